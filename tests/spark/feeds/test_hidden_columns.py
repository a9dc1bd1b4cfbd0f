"""Readers see the declared columns alone; what is hidden is there for the next batch, whoever rewrote the files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from feed_line import BRONZE, ITEMS, SMALL, TOTALS, VERSIONS, FeedLine, Killed, killed, some_day
from feed_model import Change

from lodestream import failpoints
from lodestream.names import STATE_COLUMN, hidden_column
from lodestream.tables import lake as lakes
from lodestream.tables.inspect import Inspector

SHOWN = {
    ITEMS: ["id", "weight", "day"],
    SMALL: ["id", "weight", "day", "twice"],
    VERSIONS: ["id", "weight", "day", "valid_from", "valid_to", "is_current"],
    TOTALS: ["day", "n", "weight"],
}


@pytest.fixture
def line(lake: object) -> Iterator[FeedLine]:
    yield FeedLine(lake.config, lake.spark)  # type: ignore[attr-defined]
    failpoints.disarm()


def filled(line: FeedLine) -> None:
    day, later = some_day(0), some_day(1)
    line.changes += [Change(f"k{n}", (n, day if n % 2 else later), 5, 0, n) for n in range(8)]
    line.drive(line.flows())
    line.changes += [Change("k1", (9, later), 7, 0, 8), Change("k2", (0, day), 7, 0, 9, gone=True)]
    line.drive(line.flows())
    line.check()


def test_every_reader_sees_the_declared_columns_alone(line: FeedLine) -> None:
    filled(line)
    inspector = Inspector(line.project.config)
    for table, columns in SHOWN.items():
        assert line.spark.table(f"lode.{table}").columns == columns
        view = inspector.look(table)
        assert view is not None
        assert view.table.scan().to_arrow().column_names == columns


@pytest.mark.timeout(400)
def test_a_compaction_by_another_tool_changes_no_result(line: FeedLine) -> None:
    """It writes the columns that it sees. A change that is older than a row's last one must lose all the same."""
    filled(line)
    for table in (ITEMS, VERSIONS, TOTALS):
        options = "options => map('rewrite-all', 'true')"
        line.spark.sql(f"CALL lode.system.rewrite_data_files(table => '{table}', {options})")
        store = line.lake.store(table)
        head = store.head()
        assert head is not None
        assert not store.holds_hidden(head)
    line.changes += [
        Change("k1", (8, some_day(0)), 6, 0, 10),  # older than what is stored
        Change("k3", (4, some_day(1)), 5, 0, 11),  # as old, and it came later
        Change("k4", (1, some_day(1)), 9, 0, 12),
    ]
    line.drive(line.flows())
    line.check()
    for table in (ITEMS, VERSIONS):
        assert all(None not in row for row in _hidden(line, table)), "every row has its order again"
    line.check_feed(ITEMS)
    line.changes += [Change("k1", (7, some_day(0)), 8, 0, 13)]
    line.drive(line.flows())
    line.check()


def test_a_kill_while_order_is_restored_leaves_it_to_the_next_look(line: FeedLine) -> None:
    filled(line)
    line.spark.sql(f"CALL lode.system.rewrite_data_files(table => '{ITEMS}', options => map('rewrite-all', 'true'))")
    failpoints.arm("mend.between", ITEMS, killed)
    line.changes += [Change("k1", (8, some_day(0)), 6, 0, 10), Change("k5", (8, some_day(0)), 9, 0, 11)]
    with pytest.raises(Killed):
        line.drive(line.flows())
    failpoints.disarm()
    line.drive(line.flows())
    line.check()
    assert all(None not in row for row in _hidden(line, ITEMS))


def test_a_table_whose_maker_was_killed_before_it_hid_its_columns_hides_them_later(
    line: FeedLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lakes, "hide", lambda _, table: killed() if str(table.name()).endswith(ITEMS) else False)
    line.changes += [Change("a", (1, some_day(0)), 1, 0, 0)]
    with pytest.raises(Killed):
        line.drive({name: flow for name, flow in line.flows().items() if name in (BRONZE, ITEMS)})
    assert any(map(hidden_column, line.spark.table(f"lode.{ITEMS}").columns))
    monkeypatch.undo()
    line.drive(line.flows())
    assert line.spark.table(f"lode.{ITEMS}").columns == SHOWN[ITEMS]
    line.check()


def test_a_gold_table_of_an_earlier_version_loses_the_column_that_its_readers_saw(line: FeedLine) -> None:
    filled(line)
    line.spark.sql(f"ALTER TABLE lode.{TOTALS} ADD COLUMN _lode struct<n: bigint>")
    line.spark.sql(f"UPDATE lode.{TOTALS} SET _lode = named_struct('n', n)")
    line.changes += [Change("k6", (3, some_day(0)), 9, 0, 10)]
    line.drive(line.flows())
    line.check()
    assert line.spark.table(f"lode.{TOTALS}").columns == SHOWN[TOTALS]
    head = line.lake.store(TOTALS).head()
    assert head is not None
    assert STATE_COLUMN in line.lake.whole(TOTALS, head.id).columns


def _hidden(line: FeedLine, table: str) -> list[tuple[object, ...]]:
    head = line.lake.store(table).head()
    assert head is not None
    rows = line.lake.whole(table, head.id)
    return [tuple(row) for row in rows.select(*filter(hidden_column, rows.columns)).collect()]
