"""Files as Bronze rows, read on executors in bounded memory.

- json, csv, text: one row a line, the bytes as they are, without the line's end (`\\n` or `\\r\\n`) and without a byte
  order mark. Blank lines are rows of text only. `.gz`, `.zst`, `.bz2` and `.lz4` are decompressed.
- csv with `multiline=true`: a quoted value may hold line ends. With `header=true` the first line is row 0.
- binary: one row a file.
- parquet: one row a record, as a JSON object (`json_values` states the encoding).

`row` counts from 1 (lines: blank ones too). **Row 0 is about the file and holds no record**: the header line as it is;
or NULL for a file without records, so that the table knows of it. Silver reads rows above 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lodestream.errors import ConfigError, LodeError, StorageUnavailable
from lodestream.sources.files import errors as file_errors
from lodestream.sources.files.json_values import json_rows
from lodestream.sources.files.lines import TooLarge, lines, records
from lodestream.sources.files.listing import FileVersion, file_state
from lodestream.sources.files.store import FileStore
from lodestream.sources.shipped import Shipped

READ_OPTIONS = ("header", "multiline", "largest_value")

_COMPRESSION = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
_BATCH_BYTES, _BATCH_ROWS = 4 * 1024 * 1024, 10_000
_PAGE_BUFFER = 256 * 1024
# Usual bytes of a row, to size batches by; zipped text is a sixth of its size.
_ROW_BYTES = {"json": 250, "csv": 100, "text": 100, "parquet": 40}
_ZIPPED = 6

_Values = Iterator[tuple[Sequence[bytes | None] | pa.Array, Sequence[int]]]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    header: bool = False
    multiline: bool = False
    largest_value: int = 128 * 1024 * 1024

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> ReadOptions:
        flags = {name: _flag(name, options[name]) for name in ("header", "multiline") if name in options}
        try:
            return cls(**flags, largest_value=int(options.get("largest_value", cls().largest_value)))
        except ValueError as error:
            raise ConfigError(f"largest_value is no number of bytes: {options['largest_value']!r}") from error


def estimated_rows(format: str, file: FileVersion) -> int:
    """A guess by size, at least one."""
    if format == "binary":
        return 1
    unzipped = file.size * (_ZIPPED if _compression(file.path) and format != "parquet" else 1)
    return max(1, unzipped // _ROW_BYTES[format])


@dataclass(frozen=True)
class FileReader:
    """Given a task's number, yields the rows of its files. Sent to executors, so it is plain data."""

    store: FileStore
    format: str
    options: ReadOptions
    tasks: Sequence[Sequence[FileVersion]]

    def __call__(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        filesystem, root = self.store.open()
        for batch in numbers:
            for task in batch.column(0).to_pylist():
                for file in self.tasks[task]:
                    yield from self._rows(filesystem, root, file)

    def _rows(self, filesystem: Any, root: str, file: FileVersion) -> Iterator[pa.RecordBatch]:
        empty = True
        try:
            for values, numbers in self._values(filesystem, f"{root}/{file.path}", file):
                if len(numbers):
                    empty = False
                    yield self._batch(file, values, numbers)
            if empty:
                yield self._batch(file, [None], [0])
            self._verify(filesystem, root, file)
        except (OSError, pa.ArrowException, TooLarge) as error:
            raise Shipped(self._trouble(filesystem, root, file, error)) from error

    def _values(self, filesystem: Any, path: str, file: FileVersion) -> _Values:
        if self.format == "parquet":
            yield from _parquet(filesystem, path)
        elif self.format == "binary":
            yield from _whole(filesystem, path, file, self.options.largest_value)
        else:
            yield from self._lines(filesystem, path)

    def _lines(self, filesystem: Any, path: str) -> _Values:
        csv = self.format == "csv"
        number = 0 if csv and self.options.header else 1
        with filesystem.open_input_stream(path, compression=_compression(path)) as stream:
            chunks = lines(stream, self.options.largest_value)
            if csv and self.options.multiline:
                chunks = records(chunks, self.options.largest_value)
            for chunk in chunks:
                values = [line.removesuffix(b"\r") for line in chunk]
                numbers: Sequence[int] = range(number, number + len(values))
                number += len(values)
                if self.format != "text":
                    kept = [(value, row) for value, row in zip(values, numbers, strict=True) if value.strip()]
                    values, numbers = [value for value, _ in kept], [row for _, row in kept]
                yield values, numbers

    def _batch(self, file: FileVersion, values: Any, numbers: Sequence[int]) -> pa.RecordBatch:
        count = len(numbers)
        columns = {
            "value": values if isinstance(values, pa.Array) else pa.array(values, pa.binary()),
            "file": pa.repeat(pa.scalar(f"{self.store.root}/{file.path}"), count),
            "row": pa.array(numbers, pa.int64()),
            "modified": pa.repeat(pa.scalar(file.modified, pa.timestamp("us", tz="UTC")), count),
            "size": pa.repeat(pa.scalar(file.size, pa.int64()), count),
        }
        return pa.RecordBatch.from_pydict(columns)

    def _verify(self, filesystem: Any, root: str, file: FileVersion) -> None:
        """What we read is what was listed, or none of it counts."""
        now = file_state(filesystem, root, file.path)
        if now is None or not self.store.same(now, file):
            trouble = file_errors.gone if now is None else file_errors.unsettled
            raise Shipped(trouble(self.store.root, file))

    def _trouble(self, filesystem: Any, root: str, file: FileVersion, error: Exception) -> LodeError:
        if isinstance(error, FileNotFoundError):
            return file_errors.gone(self.store.root, file)
        if isinstance(error, OSError) and (error.errno is not None or "AWS Error" in str(error)):
            return StorageUnavailable(f"reading {self.store.root}/{file.path} failed", why=str(error))
        self._verify(filesystem, root, file)
        if isinstance(error, TooLarge):
            return file_errors.too_large(self.store.root, file, self.options.largest_value)
        return file_errors.unreadable(self.store.root, file, error)


def _whole(filesystem: Any, path: str, file: FileVersion, limit: int) -> _Values:
    if file.size > limit:
        raise TooLarge
    with filesystem.open_input_stream(path, compression=None) as stream:
        yield [stream.read(limit)], [1]


def _parquet(filesystem: Any, path: str) -> _Values:
    with filesystem.open_input_file(path) as opened:
        # With a buffer pages are streamed; without one every column of a row group is loaded whole.
        file = pq.ParquetFile(opened, pre_buffer=False, buffer_size=_PAGE_BUFFER)
        number = 1
        for batch in file.iter_batches(batch_size=_batch_rows(file.metadata)):
            yield json_rows(batch), range(number, number + batch.num_rows)
            number += batch.num_rows


def _batch_rows(metadata: Any) -> int:
    size = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    return max(1, min(_BATCH_ROWS, int(_BATCH_BYTES * metadata.num_rows / max(1, size))))


def _compression(path: str) -> str | None:
    return next((name for suffix, name in _COMPRESSION.items() if path.lower().endswith(suffix)), None)


def _flag(name: str, text: str) -> bool:
    if str(text).lower() not in ("true", "false"):
        raise ConfigError(f"option {name} is {text!r}", fix=f'write "{name}": "true" or "false"')
    return str(text).lower() == "true"
