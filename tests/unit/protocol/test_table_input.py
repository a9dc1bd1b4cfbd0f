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
