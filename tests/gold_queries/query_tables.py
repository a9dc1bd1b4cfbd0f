"""The tables that generated queries read, and random histories of them: nulls, duplicates, updates, deletes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from query_model import Kind

from lodestream.pipeline.gold import InputInfo

Row = tuple[Any, ...]
State = Mapping[str, tuple[Row, ...]]
TYPES: dict[str, Kind] = {
    "int": "int",
    "bigint": "int",
    "string": "str",
    "double": "dbl",
    "boolean": "bool",
    "date": "date",
    "timestamp_ntz": "ts",
}
WORDS = (None, "a", "b", "o'hara", "ohara", "it's", 'say "b"', "")

TRIPS = InputInfo(
    "silver.trips",
    {
        "id": "int",
        "zone": "int",
        "cat": "string",
        "fare": "decimal(10,2)",
        "qty": "int",
        "dist": "double",
        "flag": "boolean",
        "day": "date",
        "seen": "timestamp_ntz",
    },
    keys=("id",),
)
PAYS = InputInfo(
    "silver.pays",
    {"pay": "int", "trip": "int", "zone": "bigint", "amount": "decimal(8,2)", "cat": "string", "flag": "boolean"},
    keys=("pay",),
)
ZONES = InputInfo(
    "silver.zones",
    {"location": "int", "region": "string", "rate": "int", "zone": "int"},
    keys=("location",),
    lookup=True,
)
VISITS = InputInfo("silver.visits", {"zone": "int", "cat": "string", "qty": "int", "fare": "decimal(10,2)"})
INFOS = {info.name: info for info in (TRIPS, PAYS, ZONES, VISITS)}
# Two roles of the same tables: with a lookup, whose changes are told apart, and without one.
NO_LOOKUP = {**INFOS, "silver.zones": InputInfo("silver.zones", ZONES.columns, ZONES.keys)}


def kind_of(declared: str | None) -> Kind:
    return TYPES.get(str(declared), "dec")


@dataclass(frozen=True)
class History:
    """What the tables hold after each batch; what changed in between follows from that."""

    states: tuple[State, ...]

    def feed(self, batch: int, table: str) -> list[tuple[Row, int]]:
        """Rows that went weigh -1, rows that came +1."""
        if batch == 0:
            return []
        old, new = Counter(self.states[batch - 1].get(table, ())), Counter(self.states[batch].get(table, ()))
        return [(row, -1) for row in (old - new).elements()] + [(row, 1) for row in (new - old).elements()]


def history(chance: random.Random, batches: int = 4) -> History:
    states: list[dict[str, tuple[Row, ...]]] = [
        {name: tuple(_rows(chance, info, chance.choice((0, 3, 6, 9)))) for name, info in INFOS.items()}
    ]
    for _ in range(batches - 1):
        before = states[-1]
        if chance.random() < 0.4:
            states.append({**before, **_one_change(chance, before)})
            continue
        changed = {name for name in INFOS if chance.random() < 0.6} or {"silver.trips"}
        states.append(
            {n: tuple(_changed(chance, INFOS[n], rows)) if n in changed else rows for n, rows in before.items()}
        )
    return History(tuple(states))


def _one_change(chance: random.Random, before: State) -> State:
    """A single row of a table or two comes, goes or changes: what else was touched cannot hide what was missed."""
    found: dict[str, tuple[Row, ...]] = {}
    for name in chance.sample(list(INFOS), chance.choice((1, 2, 2))):
        info, rows = INFOS[name], list(before[name])
        place = chance.randrange(len(rows)) if rows else 0
        gone = rows.pop(place) if rows and chance.random() < 0.8 else None
        if gone is None or chance.random() < 0.6:
            free = [key for key in range(10) if key not in {row[0] for row in rows}]
            rows.append(_row(chance, info, gone[0] if gone and info.keys else free[0] if free else 10))
        found[name] = tuple(rows)
    return found


def _rows(chance: random.Random, info: InputInfo, count: int) -> list[Row]:
    if not info.keys:
        found = [_row(chance, info, None) for _ in range(count)]
        return found + [chance.choice(found) for _ in range(count // 3)]
    keys = chance.sample(range(0 if info.name == "silver.zones" else 1, 10), min(count, 9))
    return [_row(chance, info, key) for key in keys]


def _changed(chance: random.Random, info: InputInfo, rows: Sequence[Row]) -> list[Row]:
    if chance.random() < 0.05:
        return []
    result: list[Row] = []
    for row in rows:
        fate = chance.random()
        if fate < 0.2:
            continue
        if fate < 0.45:  # one column changes, or all do
            fresh = _row(chance, info, row[0] if info.keys else None)
            place = chance.randrange(1 if info.keys else 0, len(row))
            row = fresh if fate < 0.25 else (*row[:place], fresh[place], *row[place + 1 :])
        result.append(row)
    taken = {row[0] for row in result}
    for row in _rows(chance, info, chance.randrange(5)):
        if not info.keys or row[0] not in taken:
            result.append(row)
    return result


def _row(chance: random.Random, info: InputInfo, key: int | None) -> Row:
    values = [value(chance, kind_of(declared)) for declared in info.columns.values()]
    return (key, *values[1:]) if info.keys else tuple(values)


def value(chance: random.Random, kind: Kind) -> Any:
    """From a small world, so that rows meet."""
    if chance.random() < 0.15:
        return None
    if kind == "int":
        return chance.choice((0, 1, 1, 2, 2, 3, 4, 5, -1))
    if kind == "dec":
        return Decimal(chance.choice((-150, 0, 100, 100, 200, 250, 300, 1050, 1125))).scaleb(-2)
    if kind == "dbl":
        return chance.randrange(-8, 48) / 4
    if kind == "str":
        return chance.choice(WORDS)
    if kind == "bool":
        return chance.random() < 0.5
    if kind == "date":
        return date(2024, 1, 30) + timedelta(days=chance.randrange(4))
    return datetime(2024, 1, 1) + timedelta(minutes=30 * chance.randrange(100))
