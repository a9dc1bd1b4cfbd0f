"""New files in a folder or bucket, each read exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from lodestream.config import nearest
from lodestream.errors import ConfigError, LodeError, SourceUnsettled
from lodestream.sources.files import errors as file_errors
from lodestream.sources.files import position as positions
from lodestream.sources.files.declaration import BRONZE_DDL, Files
from lodestream.sources.files.ledger import KnownFiles, Ledger
from lodestream.sources.files.listing import Clock, FileVersion, Folder, Listing, Settling, fingerprint
from lodestream.sources.files.rows import READ_OPTIONS, FileReader, ReadOptions, estimated_rows
from lodestream.sources.files.store import S3_OPTIONS, file_store
from lodestream.sources.kinds import Opening
from lodestream.sources.shipped import unpack
from lodestream.sources.source import Position, Source
from lodestream.tables.lake import Lake

_OPTIONS = (*READ_OPTIONS, *S3_OPTIONS, "files_per_batch")
_FILES_PER_BATCH = "200"
_TASK_BYTES = 32 * 1024 * 1024
# Between two listings rest this many times as long as the last one took: a bucket of 100,000 files takes seconds.
_REST, _LONGEST_REST = 4, 30.0


class FilesSource(Source):
    """Reads files that have settled, oldest first. Positions are described in `position`, rows in `rows`.

    A file counts when its size and time stay the same for the settle time and its name is not one of unfinished files.
    A file that changes after it was read stops the flow; one that is removed after it was read changes nothing.
    `table_files` tells what the Bronze table holds (see `bronze_files`): asked only when the folder does not say.
    """

    # Files do not tell how many rows they hold: `pending` is a guess by size, not a limit.
    estimates = True

    def __init__(
        self, spark: SparkSession, declared: Files, table_files: KnownFiles, *, clock: Clock | None = None
    ) -> None:
        self.name = "files"
        self._spark = spark
        self._format = declared.format
        self._read_options = ReadOptions.parse(_checked(declared.options))
        self._most_files = int(declared.options.get("files_per_batch", _FILES_PER_BATCH))
        self._store = file_store(declared.path, declared.options)
        self._folder = Folder(self._store, declared.pattern)
        self._clock = clock or Clock()
        self._settling = Settling(declared.settle_seconds, self._clock)
        self._ledger = Ledger(self._store.root, table_files)
        self._listing: Listing | None = None
        self._list_again = 0.0
        self._covered: tuple[Position, float] | None = None

    def latest(self) -> Position | None:
        """The settled files as one number. The names stay here until `cap` puts some of them into a position."""
        listing = self._list()
        if listing is None:
            return None
        return {"root": self._store.root, "files": len(listing.settled), "sum": f"{listing.sum:032x}"}

    def start(self, latest: Position) -> Position:
        return positions.begin(latest["root"])

    def check(self, since: Position, latest: Position) -> None:
        if since["root"] != latest["root"]:
            raise file_errors.moved(since["root"], latest["root"])
        changed = self._ledger.changed(since, self._listed())
        if changed:
            raise file_errors.rewritten(self._store.root, changed)

    def cap(self, since: Position, latest: Position, rows: int) -> Position:
        """Whole files, oldest first: at least one, then as many as `rows` and the size of a position allow."""
        new = self._new(since)
        chosen: list[FileVersion] = []
        for file in new[: self._most_files]:
            rows -= self._rows(file)
            if chosen and rows < 0:
                break
            chosen.append(file)
        to = positions.advance(since, chosen) if chosen else since
        self._covered = (to, self._listed().taken) if len(positions.batch(since, to)) == len(new) else None
        return to

    def pending(self, since: Position, to: Position) -> int:
        if since == to:
            return 0
        files = positions.batch(since, to) if "batch" in to else self._new(since)
        return sum(map(self._rows, files))

    def read(self, since: Position, to: Position) -> DataFrame:
        files = positions.batch(since, to)
        if self._store.local:
            self._still_there(files)
        tasks = _balanced(files, self._tasks(files))
        reader = FileReader(self._store, self._format, self._read_options, tasks)
        return self._spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(reader, BRONZE_DDL)

    def accept(self, since: Position, latest: Position) -> Position:
        if since["root"] != latest["root"]:
            return self._ledger.moved(latest["root"])
        return self._ledger.accept(since, self._listed())

    def asof(self, to: Position) -> float | None:
        """When the folder was listed, if no file of that listing is left after `to`."""
        return self._covered[1] if self._covered and self._covered[0] == to else None

    def explain(self, error: Exception) -> LodeError | None:
        """Our error inside what Spark raised while it read the rows; None when it came from elsewhere."""
        found = unpack(error)
        if found is not None:
            self._list_again = 0.0
        return found

    def _list(self) -> Listing | None:
        began = self._clock.monotonic()
        if self._listing is not None and began < self._list_again:
            return self._listing
        first = self._listing is None
        self._listing = self._look()
        if first and self._listing is not None and len(self._listing.settled) < len(self._listing.files):
            # `run --once` asks once: give what was here before us its second look.
            self._clock.sleep(self._settling.second_look)
            self._listing = self._look()
        ended = self._clock.monotonic()
        self._list_again = ended + min(max(self._settling.seconds / 4, _REST * (ended - began)), _LONGEST_REST)
        return self._listing

    def _look(self) -> Listing | None:
        taken = self._clock.now()
        files = self._folder.versions()
        if files is None:
            return None
        settled = self._settling.settled(files)
        return Listing(tuple(files), tuple(settled), fingerprint(settled), taken)

    def _listed(self) -> Listing:
        listing = self._listing or self._list()
        if listing is None:
            raise SourceUnsettled(f"{self._store.root} is gone", why="the folder was there a moment ago")
        return listing

    def _new(self, since: Position) -> list[FileVersion]:
        listing = self._listed()
        known = self._ledger.known(since, listing)
        return [file for file in listing.settled if file.path not in known]

    def _still_there(self, files: Sequence[FileVersion]) -> None:
        for file in files:
            now = self._folder.state(file.path)
            if now != file:
                self._list_again = 0.0
                trouble = file_errors.gone if now is None else file_errors.unsettled
                raise trouble(self._store.root, file)

    def _rows(self, file: FileVersion) -> int:
        return estimated_rows(self._format, file)

    def _tasks(self, files: Sequence[FileVersion]) -> int:
        by_size = sum(file.size for file in files) // _TASK_BYTES
        return min(len(files), max(by_size, self._spark.sparkContext.defaultParallelism))


def open_files(declared: Files, opening: Opening) -> FilesSource:
    return FilesSource(opening.spark, declared, partial(bronze_files, opening.lake, opening.table, declared))


def bronze_files(lake: Lake, table: str, declared: Files) -> dict[str, FileVersion]:
    """The declared folder's files that a Bronze table has rows of, in the version that was read."""
    if not lake.exists(table):
        return {}
    root = file_store(declared.path, declared.options).root + "/"
    rows = lake.whole(table).selectExpr("file", "unix_micros(modified) AS modified", "size").distinct()
    found = rows.where(rows.file.startswith(root)).toArrow().to_pylist()
    paths = [(row["file"].removeprefix(root), row) for row in found]
    return {path: FileVersion(row["modified"], path, row["size"]) for path, row in paths}


def _balanced(files: Sequence[FileVersion], tasks: int) -> list[list[FileVersion]]:
    """Largest first to the least loaded task."""
    groups: list[list[FileVersion]] = [[] for _ in range(tasks)]
    loads = [0] * tasks
    for file in sorted(files, key=lambda file: (-file.size, file.path)):
        least = loads.index(min(loads))
        groups[least].append(file)
        loads[least] += file.size
    return groups


def _checked(options: Mapping[str, str]) -> Mapping[str, str]:
    for name in options:
        if name not in _OPTIONS:
            close = nearest(name, _OPTIONS)
            raise ConfigError(
                f'unknown option "{name}" of Files',
                why=f"the options are {', '.join(_OPTIONS)}",
                fix=f"did you mean {close}?" if close else "remove it",
            )
    return options
