"""What can be wrong with a file, in words that name it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from lodestream.errors import SourceGap, SourceRecreated, SourceRewritten, SourceUnreadable, SourceUnsettled
from lodestream.sources.files.listing import FileVersion

_ACCEPT = "`lode run --accept-gap TABLE` records in the table that they count as read"


def gone(root: str, file: FileVersion) -> SourceGap:
    return SourceGap(
        f"{root}/{file.path} disappeared before it was read",
        why=f"it was listed with {file.size:,} bytes, and its rows are in no batch",
        fix="put it back, or run again to go on without it",
    )


def unsettled(root: str, file: FileVersion) -> SourceUnsettled:
    return SourceUnsettled(
        f"{root}/{file.path} changed while it was read",
        why="it was still being written after the settle time; nothing of it was published",
        fix="write files under a hidden name and rename them when done, or raise settle",
    )


def unreadable(root: str, file: FileVersion, cause: BaseException) -> SourceUnreadable:
    said = str(cause).strip().splitlines()
    return SourceUnreadable(
        f"{root}/{file.path} cannot be read",
        why=said[0] if said else type(cause).__name__,
        fix="replace the file or move it out of the folder; the flow then goes on",
    )


def too_large(root: str, file: FileVersion, limit: int) -> SourceUnreadable:
    return SourceUnreadable(
        f"{root}/{file.path} holds a value of more than {limit:,} bytes",
        why="one value is one row, and a row must fit into memory",
        fix='check the format, or raise the option "largest_value"; moving the file away lets the flow go on',
    )


def rewritten(root: str, pairs: Sequence[tuple[FileVersion, FileVersion]]) -> SourceRewritten:
    before, after = pairs[0]
    others = f" and {len(pairs) - 1:,} other files" if len(pairs) > 1 else ""
    return SourceRewritten(
        f"{root}/{after.path}{others} changed after it was read",
        why=f"the table has read {_shown(before)}, the folder now has {_shown(after)}",
        fix=f"put the old file back and add the new data under another name; if the changes may be ignored, {_ACCEPT}",
    )


def doubtful(root: str, files: Sequence[FileVersion], held: int, read: int) -> SourceRewritten:
    return SourceRewritten(
        f"it is not known whether {root}/{files[0].path} was read ({len(files):,} such files)",
        why=f"the table has read {read:,} files and holds rows of {held:,}: rows were deleted from it",
        fix=f"move files that must not be read again out of the folder; or {_ACCEPT}",
    )


def moved(before: str, after: str) -> SourceRecreated:
    return SourceRecreated(
        f"the declared folder is {after}, the table has read {before}",
        why="files of another folder are other files, even with the same names",
        fix="declare the old path; or `lode run --accept-gap TABLE` reads the new folder from its first file",
    )


def _shown(file: FileVersion) -> str:
    moment = datetime.fromtimestamp(file.modified / 1e6, UTC)
    return f"{file.size:,} bytes of {moment:%Y-%m-%d %H:%M:%S.%f}Z"
