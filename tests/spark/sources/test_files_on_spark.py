"""Files into a Bronze table, through Spark and the publish protocol."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lodestream import Files
from lodestream.errors import SourceRewritten, SourceUnreadable
from lodestream.sources.files.declaration import BRONZE_DDL
from lodestream.sources.files.reading import FilesSource, bronze_files


class Reading:
    """A flow's loop over one files source."""

    def __init__(self, table: Any, declared: Files) -> None:
        self.table = table
        self.declared = declared
        self.restart()

    def restart(self) -> None:
        self.asked = 0
        self.source = FilesSource(self.table.lake.spark, self.declared, self._table_files)

    def _table_files(self) -> Any:
        self.asked += 1
        return bronze_files(self.table.lake, self.table.name, self.declared)

    def drain(self, rows: int = 10**9) -> None:
        while True:
            latest = self.source.latest()
            assert latest is not None
            since = self.table.position() or self.source.start(latest)
            self.source.check(since, latest)
            to = self.source.cap(since, latest, rows)
            if to == since:
                return
            self.table.publish(self.source.read(since, to), to)

    def rows(self) -> list[tuple[str, int, bytes | None]]:
        found = self.table.rows().orderBy("file", "row").collect()
        return [(Path(row.file).name, row.row, None if row.value is None else bytes(row.value)) for row in found]


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "in bö x"
    folder.mkdir()
    return folder


@pytest.fixture
def reading(bronze: Callable[[str, str], Any]) -> Callable[[Files], Reading]:
    return lambda declared: Reading(bronze(BRONZE_DDL, "files"), declared)


def put(file: Path, content: bytes, modified: float = 1_700_000_000.123456) -> None:
    file.write_bytes(content)
    os.utime(file, ns=(round(modified * 1e6) * 1000, round(modified * 1e6) * 1000))


def test_files_land_once_over_restarts_late_files_rollbacks_and_archiving(
    inbox: Path, reading: Callable[[Files], Reading]
) -> None:
    flow = reading(Files(str(inbox), settle="0 s", options={"files_per_batch": "2"}))
    for number in range(5):
        put(inbox / f"{number}.json", b'{"n":%d}\n{"n":%d}\n' % (number, number), 1_700_000_000.0 + number)
    put(inbox / "9.json.tmp", b"unfinished")
    expected = [(f"{n}.json", row, b'{"n":%d}' % n) for n in range(5) for row in (1, 2)]

    flow.drain()
    assert flow.rows() == expected
    assert flow.table.batches() == 3

    flow.restart()
    flow.drain()
    assert (flow.rows(), flow.asked) == (expected, 0)

    put(inbox / "late.json", b"{}", 1_600_000_000.0)
    (inbox / "1.json").unlink()
    flow.restart()
    flow.drain()
    assert (flow.rows(), flow.asked) == ([*expected, ("late.json", 1, b"{}")], 1)

    flow.table.rollback(1)
    assert flow.rows() == expected
    flow.drain()
    assert flow.rows() == [*expected, ("late.json", 1, b"{}")]

    put(inbox / "2.json", b"changed", 1_700_000_009.0)
    flow.restart()
    with pytest.raises(SourceRewritten, match=r"2\.json changed after it was read"):
        flow.drain()


def test_two_positions_give_the_same_rows_always(inbox: Path, reading: Callable[[Files], Reading]) -> None:
    flow = reading(Files(str(inbox), "text", settle="0 s"))
    for number in range(7):
        put(inbox / f"{number}.txt", b"\n".join(b"%d-%d" % (number, line) for line in range(number * 100 + 1)))
    latest = flow.source.latest()
    assert latest is not None
    since = flow.source.start(latest)
    to = json.loads(json.dumps(flow.source.cap(since, latest, 10**9)))
    first, again = (sorted(flow.source.read(since, to).collect()) for _ in range(2))
    assert first == again
    assert len(first) == sum(number * 100 + 1 for number in range(7))
    assert flow.source.read(to, to).count() == 0


def test_each_format_lands_with_its_coordinates(inbox: Path, reading: Callable[[Files], Reading]) -> None:
    put(inbox / "a.csv.gz", gzip.compress(b"id,name\n1,\xff\n"))
    flow = reading(Files(str(inbox), "csv", settle="0 s", options={"header": "true"}))
    flow.drain()
    header, row = flow.table.rows().orderBy("row").collect()
    assert (header.row, bytes(header.value)) == (0, b"id,name")
    assert (row.row, bytes(row.value), row.file) == (1, b"1,\xff", str(inbox / "a.csv.gz"))
    assert row.modified.astimezone(UTC) == datetime.fromtimestamp(1_700_000_000, UTC).replace(microsecond=123456)
    assert row.size == (inbox / "a.csv.gz").stat().st_size


def test_parquet_records_are_json_that_spark_reads_back_exactly(
    inbox: Path, reading: Callable[[Files], Reading]
) -> None:
    moment = datetime(2024, 2, 29, 1, 2, 3, 456789, UTC)
    columns = {
        "d": pa.array([Decimal("12345678901234567890.123456"), None], pa.decimal128(38, 6)),
        "t": pa.array([moment, None], pa.timestamp("us", tz="America/New_York")),
        "b": pa.array([b"\x00\xff", None], pa.binary()),
        "s": pa.array(['q"\n', "ü"]),
        "l": pa.array([[1, None], []], pa.list_(pa.int64())),
    }
    pq.write_table(pa.table(columns), inbox / "a.parquet")
    flow = reading(Files(str(inbox), "parquet", pattern="*.parquet", settle="0 s"))
    flow.drain()
    from pyspark.sql import functions as f

    schema = "d DECIMAL(38,6), t TIMESTAMP, b BINARY, s STRING, l ARRAY<BIGINT>"
    decoded = flow.table.rows().orderBy("row").select(f.from_json(f.col("value").cast("string"), schema).alias("r"))
    first, second = (row.r for row in decoded.collect())
    assert first.d == Decimal("12345678901234567890.123456")
    assert first.t.astimezone(UTC) == moment
    assert (bytes(first.b), first.s, first.l) == (b"\x00\xff", 'q"\n', [1, None])
    assert (second.d, second.t, second.b, second.s, second.l) == (None, None, None, "ü", [])


def test_a_ten_megabyte_line_lands_byte_for_byte(inbox: Path, reading: Callable[[Files], Reading]) -> None:
    line = os.urandom(10_000_000).replace(b"\n", b"x").replace(b"\r", b"y")
    put(inbox / "a.txt", line + b"\nshort\n")
    flow = reading(Files(str(inbox), "text", settle="0 s"))
    flow.drain()
    assert flow.rows() == [("a.txt", 1, line), ("a.txt", 2, b"short")]


def test_a_broken_file_stops_with_its_name_and_publishes_nothing(
    inbox: Path, reading: Callable[[Files], Reading]
) -> None:
    put(inbox / "a.json.gz", gzip.compress(os.urandom(10_000))[:-2_000])
    flow = reading(Files(str(inbox), settle="0 s"))
    with pytest.raises(Exception, match="lode-error") as raised:
        flow.drain()
    error = flow.source.explain(raised.value)
    assert isinstance(error, SourceUnreadable)
    assert str(inbox / "a.json.gz") in error.what
    assert flow.table.batches() == 0
    put(inbox / "a.json.gz", gzip.compress(b'{"a":1}\n'))
    flow.drain()
    assert flow.rows() == [("a.json.gz", 1, b'{"a":1}')]
