"""Which files have been read: from the position, the folder and, if these do not say, the Bronze table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from lodestream.sources.files import errors as file_errors
from lodestream.sources.files import position as positions
from lodestream.sources.files.listing import FileVersion, Listing, fingerprint
from lodestream.sources.source import Position

Known = dict[str, FileVersion]
KnownFiles = Callable[[], Mapping[str, FileVersion]]


class Ledger:
    """Remembers the files of the last position it was asked for; any other is worked out anew (restart, rollback)."""

    def __init__(self, root: str, table_files: KnownFiles) -> None:
        self._root = root
        self._table_files = table_files
        self._last: tuple[Position, Known] | None = None

    def known(self, since: Position, listing: Listing) -> Known:
        """The files read up to `since`, in the version that was read."""
        if self._last is None or self._last[0] != since:
            followed = self._followed(since)
            self._last = (since, self._derived(since, listing) if followed is None else followed)
        return self._last[1]

    def changed(self, since: Position, listing: Listing) -> list[tuple[FileVersion, FileVersion]]:
        """Files that are not what was read: (then, now)."""
        known = self.known(since, listing)
        pairs = ((known.get(file.path), file) for file in listing.files)
        return [(then, now) for then, now in pairs if then is not None and then != now]

    def accept(self, since: Position, listing: Listing) -> Position:
        """Every listed version that changed, or that cannot be placed, counts as read from now on."""
        upto = positions.mark(since)
        known = {**self._table_files(), **_by_path(positions.accepted(since))}
        read = [file for file in listing.files if file.path in known or (upto is not None and file.key <= upto)]
        excused = [file for file in read if known.get(file.path) != file]
        self._last = None
        return positions.accept(since, [file for file in read if file.size > 0], excused)

    def moved(self, root: str) -> Position:
        return {**positions.begin(root), "read": len(self._table_files())}

    def _followed(self, since: Position) -> Known | None:
        """What we knew before and the batch that led here; None when `since` is not our own next step."""
        if self._last is None:
            return None
        before, known = self._last
        if before["root"] != since["root"] or not positions.follows(before, since):
            return None
        known.update(_by_path(positions.unpack(since.get("batch"))))
        return known

    def _derived(self, since: Position, listing: Listing) -> Known:
        upto = positions.mark(since)
        if upto is None:
            return {}
        older = [file for file in listing.files if file.key <= upto and file.size > 0]
        if fingerprint(older) == positions.total(since):
            return _by_path(older)
        table = self._table_files()
        known = {**table, **_by_path(positions.accepted(since))}
        doubtful = [file for file in older if file.path not in known]
        if doubtful and len(table) != since["read"]:
            raise file_errors.doubtful(self._root, doubtful, len(table), since["read"])
        return known


def _by_path(files: Iterable[FileVersion]) -> Known:
    return {file.path: file for file in files}
