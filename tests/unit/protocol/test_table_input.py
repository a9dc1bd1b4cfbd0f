"""How much of a table one batch of its reader takes."""

from __future__ import annotations

import pytest

from lodestream.errors import SourceRewritten
from lodestream.sources.source import Position
from lodestream.sources.table import AppendedRows
from lodestream.tables.memory import MemoryStore, MemoryTable
from lodestream.tables.store import MAIN


class Reader(AppendedRows):
    """Reads a table in memory."""

    def __init__(self, table: MemoryTable) -> None:
        super().__init__(None, table.name)  # type: ignore[arg-type]
        self._memory = MemoryStore(table)

    def _open(self) -> MemoryStore:  # type: ignore[override]
        self._memory.refresh()
        return self._memory

    _loaded = _open  # type: ignore[assignment]

    def at(self, snapshot: int | None) -> Position:
        return {"uuid": "one", "snapshot": snapshot}


@pytest.fixture
def table() -> MemoryTable:
    return MemoryTable()


def append(table: MemoryTable, rows: int, operation: str = "append") -> int:
    MemoryStore(table).append(MAIN, {}, range(rows), operation=operation)
    return table.refs[MAIN]


def taken(reader: Reader, table: MemoryTable, since: int | None, rows: int) -> int:
    latest = reader.at(table.refs[MAIN])
    to = reader.cap(reader.at(since), latest, rows)
    return reader.pending(reader.at(since), to)


def test_a_batch_larger_than_the_cap_is_taken_whole(table: MemoryTable) -> None:
    append(table, 50)
    assert taken(Reader(table), table, None, 40) == 50


def test_empty_snapshots_before_a_large_one_do_not_hold_it_up(table: MemoryTable) -> None:
    place = append(table, 10)
    append(table, 0, "replace")
    append(table, 50)
    assert taken(Reader(table), table, place, 40) == 50


def test_as_many_batches_as_fit_the_cap(table: MemoryTable) -> None:
    for _ in range(5):
        append(table, 15)
    assert taken(Reader(table), table, None, 40) == 30


def test_maintenance_after_the_last_batch_is_passed_over(table: MemoryTable) -> None:
    append(table, 15)
    head = append(table, 0, "replace")
    reader = Reader(table)
    assert reader.cap(reader.at(None), reader.at(head), 15) == reader.at(head)


def test_a_place_that_expired_is_found_by_what_follows_it(table: MemoryTable) -> None:
    place = append(table, 10)
    append(table, 20)
    table.expire([place])
    assert taken(Reader(table), table, place, 40) == 20


def test_a_place_that_is_no_longer_in_the_history_stops_the_reader(table: MemoryTable) -> None:
    first = append(table, 10)
    place = append(table, 20)
    table.set(MAIN, first)
    append(table, 30)
    with pytest.raises(SourceRewritten, match="rolled back"):
        taken(Reader(table), table, place, 40)


def test_a_new_reader_of_a_table_whose_history_was_cut_off_gets_every_row(table: MemoryTable) -> None:
    """A compaction added none of them, and yet they are all there to be read."""
    first = append(table, 50)
    compacted = append(table, 0, "replace")
    table.expire([1, first])
    assert taken(Reader(table), table, None, 40) == 50
    append(table, 30)
    append(table, 15)
    reader = Reader(table)
    assert reader.cap(reader.at(None), reader.at(table.refs[MAIN]), 40) == reader.at(compacted), "the base, whole"
    assert taken(reader, table, None, 90) == 80
    assert taken(reader, table, compacted, 40) == 30


def test_a_new_reader_takes_rows_that_were_changed_in_place_as_they_are_now(table: MemoryTable) -> None:
    """Whoever rebuilds a reading table, as he is told to, must not meet the same refusal again."""
    place = append(table, 50)
    MemoryStore(table).append(MAIN, {}, (), operation="delete", removed=range(20))
    changed = table.refs[MAIN]
    head = append(table, 5)
    reader = Reader(table)
    with pytest.raises(SourceRewritten, match="changed in place"):
        reader.check(reader.at(place), reader.at(head))
    reader.check(reader.at(None), reader.at(head))
    assert reader.cap(reader.at(None), reader.at(head), 10) == reader.at(changed), "not a state from before the change"
    assert reader.pending(reader.at(None), reader.at(changed)) == 30
    reader.check(reader.at(changed), reader.at(head))
    assert taken(reader, table, changed, 10) == 5


def test_a_position_before_everything_has_no_age_and_asks_for_no_snapshot(table: MemoryTable) -> None:
    """So a table that is adopted begins. Java knows no snapshot without a number, and would raise."""
    reader = Reader(table)
    known = reader._memory.snapshot
    reader._memory.snapshot = lambda number: known(number + 0)  # type: ignore[method-assign]
    assert reader.asof(reader.at(None)) is None


def test_large_rows_count_for_several(table: MemoryTable) -> None:
    """A hundred rows of a megabyte each are no batch of a hundred small ones."""
    place = append(table, 1)
    for _ in range(4):
        MemoryStore(table).append(MAIN, {"added-files-size": str(10 * 1024 * 1024)}, range(10))
    assert taken(Reader(table), table, place, 25_000) == 20
