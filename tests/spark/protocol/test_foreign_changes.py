"""What others do to the tables: rollbacks, overwrites, compaction, expiry, tables that are not ours."""

from __future__ import annotations

import time
from typing import Any

import pytest
from protocol_line import BRONZE, DEAD, GOLD, SILVER, Line

from lodestream.errors import NotOurTable, SourceRewritten


@pytest.fixture
def line(lake: Any) -> Line:
    return Line(lake.config, lake.spark)


def call(line: Line, procedure: str) -> None:
    line.spark.sql(f"CALL lode.system.{procedure}").collect()


def head(line: Line, table: str) -> int:
    found = line.lake.store(table).head()
    assert found is not None
    return found.id


def test_table_rolled_back_is_recomputed_from_there(line: Line) -> None:
    for end in (40, 80, 120):
        line.end = end
        line.drive(line.flows())
        if end == 40:
            mark = head(line, SILVER)
    call(line, f"rollback_to_snapshot('{SILVER}', {mark})")
    flows = line.flows()
    line.drive({BRONZE: flows[BRONZE], SILVER: flows[SILVER]})
    # Gold has read what is no longer there: it stops rather than count twice.
    with pytest.raises(SourceRewritten, match="rolled back"):
        flows[GOLD].step(1000)
    line.spark.sql(f"DROP TABLE lode.{GOLD}")
    line.drive(line.flows())
    line.check()


def test_gold_rolled_back_is_recomputed(line: Line) -> None:
    for end in (40, 80, 120):
        line.end = end
        line.drive(line.flows())
        if end == 40:
            mark = head(line, GOLD)
    call(line, f"rollback_to_snapshot('{GOLD}', {mark})")
    line.drive(line.flows())
    line.check()


def test_source_rolled_back_stops_its_reader_before_it_reads(line: Line) -> None:
    line.end = 40
    line.drive(line.flows())
    mark = head(line, BRONZE)
    line.end = 80
    line.drive(line.flows())
    before = head(line, SILVER)
    call(line, f"rollback_to_snapshot('{BRONZE}', {mark})")
    flows = line.flows()
    line.drive({BRONZE: flows[BRONZE]})
    with pytest.raises(SourceRewritten, match="rolled back"):
        flows[SILVER].step(1000)
    assert head(line, SILVER) == before


@pytest.mark.parametrize("change", ["DELETE FROM lode.{} WHERE offset = 3", "UPDATE lode.{} SET partition = 9"])
def test_foreign_change_in_the_range_stops_its_reader(line: Line, change: str) -> None:
    line.end = 40
    flows = line.flows()
    line.drive(flows)
    line.spark.sql(change.format(BRONZE))
    line.end = 60
    flows[BRONZE].step(1000)
    with pytest.raises(SourceRewritten, match="changed in place"):
        flows[SILVER].step(1000)


def test_table_with_data_and_no_positions_is_not_ours(line: Line) -> None:
    line.end = 10
    line.spark.sql("CREATE NAMESPACE IF NOT EXISTS lode.bronze")
    line.spark.sql(f"CREATE TABLE lode.{BRONZE} (offset BIGINT) USING iceberg")
    line.spark.sql(f"INSERT INTO lode.{BRONZE} VALUES (1), (2)")
    with pytest.raises(NotOurTable, match="2 rows and no positions"):
        line.flows()[BRONZE].step(1000)


def test_maintenance_between_batches_changes_nothing(line: Line) -> None:
    flows = line.flows()
    for end in (40, 80, 120):
        line.end = end
        line.drive(flows, rows=15)
        for table in (BRONZE, SILVER, DEAD, GOLD):
            call(line, f"rewrite_data_files(table => '{table}', options => map('min-input-files', '2'))")
        # The reader's place is the head it read, below the compaction; the two youngest snapshots keep the chain.
        for table in (BRONZE, SILVER, GOLD):
            now = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() + 60))
            call(line, f"expire_snapshots(table => '{table}', older_than => TIMESTAMP '{now}', retain_last => 2)")
    line.drive(line.flows())
    line.check()
