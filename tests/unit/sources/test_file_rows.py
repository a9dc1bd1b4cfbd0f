"""Rows out of real files, read as an executor reads them but without Spark."""

from __future__ import annotations

import bz2
import gzip
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from lodestream.errors import ConfigError, LodeError, SourceGap, SourceUnreadable, SourceUnsettled
from lodestream.sources.files.listing import FileVersion, Folder
from lodestream.sources.files.rows import FileReader, ReadOptions, estimated_rows
from lodestream.sources.files.store import file_store
from lodestream.sources.shipped import Shipped, unpack


def read(path: Path, format: str, version: FileVersion | None = None, **options: str) -> list[tuple[int, bytes | None]]:
    store = file_store(str(path.parent), {})
    file = version or Folder(store, "*").state(path.name)
    assert file is not None
    reader = FileReader(store, format, ReadOptions.parse(options), [[file]])
    numbers = pa.RecordBatch.from_pydict({"id": pa.array([0], pa.int64())})
    rows = pa.Table.from_batches(list(reader([numbers]))).to_pylist()
    assert {row["file"] for row in rows} == {str(path)}
    assert {row["size"] for row in rows} == {file.size}
    return [(row["row"], row["value"]) for row in rows]


def refusal(path: Path, format: str, version: FileVersion | None = None, **options: str) -> LodeError:
    with pytest.raises(Shipped) as raised:
        read(path, format, version, **options)
    error = unpack(raised.value)
    assert error is not None
    return error


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_each_line_is_a_row_with_its_bytes_as_they_are(tmp_path: Path) -> None:
    file = written(tmp_path / "a.json", b'{"a":1}\r\n{"a":"\xff\xfe"}\n\n  \n{"a":3}')
    assert read(file, "json") == [(1, b'{"a":1}'), (2, b'{"a":"\xff\xfe"}'), (5, b'{"a":3}')]


def test_blank_lines_are_rows_of_text(tmp_path: Path) -> None:
    assert read(written(tmp_path / "a", b"x\n\ny\n"), "text") == [(1, b"x"), (2, b""), (3, b"y")]


def test_a_byte_order_mark_is_not_part_of_the_first_line(tmp_path: Path) -> None:
    assert read(written(tmp_path / "a", b'\xef\xbb\xbf{"a":1}\n'), "json") == [(1, b'{"a":1}')]


def test_a_header_lands_as_row_zero(tmp_path: Path) -> None:
    file = written(tmp_path / "a.csv", b"id,name\r\n1,x\r\n2,y\r\n")
    assert read(file, "csv", header="true") == [(0, b"id,name"), (1, b"1,x"), (2, b"2,y")]
    assert read(file, "csv") == [(1, b"id,name"), (2, b"1,x"), (3, b"2,y")]


def test_a_file_without_records_leaves_one_row_that_says_so(tmp_path: Path) -> None:
    assert read(written(tmp_path / "a.json", b"\n\n"), "json") == [(0, None)]
    assert read(written(tmp_path / "a.json.gz", gzip.compress(b"")), "json") == [(0, None)]
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", "parquet") == [(0, None)]


def test_quoted_line_ends_stay_inside_a_record_when_asked(tmp_path: Path) -> None:
    file = written(tmp_path / "a.csv", b'1,"x\r\ny ""q"" z"\r\n2,b\n3,"open\nto the end')
    assert read(file, "csv", multiline="true") == [
        (1, b'1,"x\r\ny ""q"" z"'),
        (2, b"2,b"),
        (3, b'3,"open\nto the end'),
    ]


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".zst", zstandard.compress), (".bz2", bz2.compress)]
)
def test_compressed_files_are_read_by_their_suffix(tmp_path: Path, suffix: str, compress: Any) -> None:
    # Two members in one file, as `cat a.gz b.gz` makes them.
    file = written(tmp_path / f"a.json{suffix}", compress(b'{"a":1}\n{"a"') + compress(b":2}\n"))
    assert read(file, "json") == [(1, b'{"a":1}'), (2, b'{"a":2}')]


def test_long_lines_and_many_lines_cross_chunks_unharmed(tmp_path: Path) -> None:
    long = os.urandom(3_000_000).replace(b"\n", b" ") + b"."
    expected = [b"x" * 10_000_000, *(b"%d" % i * 7 for i in range(40_000)), long]
    file = written(tmp_path / "a", b"\n".join(expected))
    assert [value for _, value in read(file, "text")] == expected


def test_a_binary_file_is_one_row(tmp_path: Path) -> None:
    content = os.urandom(2_500_000)
    assert read(written(tmp_path / "a.gz", content), "binary") == [(1, content)]


def test_values_beyond_the_limit_are_refused_by_name(tmp_path: Path) -> None:
    file = written(tmp_path / "a", b"short\n" + b"x" * 3_000_000)
    for format in ("text", "binary"):
        error = refusal(file, format, largest_value="1000000")
        assert isinstance(error, SourceUnreadable)
        assert str(file) in error.what


@pytest.mark.parametrize(
    ("name", "format", "content"),
    [
        ("a.json.gz", "json", gzip.compress(os.urandom(5000))[:-900]),
        ("a.json.gz", "json", b"no gzip at all"),
        ("a.parquet", "parquet", b"PAR1 cut off"),
    ],
)
def test_a_broken_file_is_refused_by_name(tmp_path: Path, name: str, format: str, content: bytes) -> None:
    error = refusal(written(tmp_path / name, content), format)
    assert isinstance(error, SourceUnreadable)
    assert str(tmp_path / name) in error.what


def test_a_file_that_is_gone_is_a_gap(tmp_path: Path) -> None:
    assert isinstance(refusal(tmp_path / "a", "text", FileVersion(1, "a", 5)), SourceGap)
    assert isinstance(refusal(tmp_path / "a.parquet", "parquet", FileVersion(1, "a.parquet", 5)), SourceGap)


def test_a_file_that_is_not_as_it_was_listed_does_not_count(tmp_path: Path) -> None:
    file = written(tmp_path / "a", b"x\n")
    assert isinstance(refusal(file, "text", FileVersion(1, "a", 2)), SourceUnsettled)


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ConfigError):
        ReadOptions.parse({"header": "yes"})
    with pytest.raises(ConfigError):
        ReadOptions.parse({"largest_value": "10 MB"})


def test_a_guess_at_rows_is_never_zero() -> None:
    assert estimated_rows("json", FileVersion(1, "a", 1)) == 1
    assert estimated_rows("binary", FileVersion(1, "a", 10**9)) == 1
    assert estimated_rows("json", FileVersion(1, "a.gz", 10**6)) > estimated_rows("json", FileVersion(1, "a", 10**6))
