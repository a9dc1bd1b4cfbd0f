"""From the table as it is to the contract as it says now: steps that Iceberg can apply without rewriting data.

Steps are plain values; the tables room applies all of them in one schema update, so every path names columns as the
table has them before any step. They are worked out from the table's present schema: after a crash they are found again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from lodestream.contracts.model import Contract, Field
from lodestream.contracts.types import Type, parse_type
from lodestream.contracts.widening import element, members, relation

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One schema change. `path` names nested fields; inside arrays and maps it goes through `element` and `value`."""

    action: Literal["add", "widen", "rename", "relax"]
    path: Path
    type: str | None = None
    name: str | None = None
    comment: str | None = None

    def __str__(self) -> str:
        place = ".".join(self.path)
        match self.action:
            case "add":
                return f"add {place} {self.type}"
            case "widen":
                return f"widen {place} to {self.type}"
            case "rename":
                return f"rename {place} to {self.name}"
        return f"let {place} be null"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A change that the table cannot make in place."""

    path: Path
    why: str
    fix: str


@dataclass(frozen=True, slots=True)
class Evolution:
    """`kept` are columns that the contract no longer names: they stay, and new rows have null in them."""

    steps: tuple[Step, ...]
    obstacles: tuple[Obstacle, ...] = ()
    kept: tuple[Path, ...] = ()


_ORDER = ("rename", "relax", "widen", "add")
_Found = Step | Obstacle | Path


def evolve(table: str, contract: Contract, *, required: Collection[str] = ()) -> Evolution:
    """How a table reaches a contract. `table` is its schema as Spark names it: `struct<id:int,...>`.

    `required` are the top-level columns that the table holds as NOT NULL.
    """
    found = list(_struct((), parse_type(table), contract.fields))
    renames = {step.name: step.path[0] for step in found if isinstance(step, Step) and step.action == "rename"}
    kept = {renames.get(name, name) for name in contract.never_null}
    found += [Step("relax", (column,)) for column in required if column not in kept]
    steps = sorted((one for one in found if isinstance(one, Step)), key=lambda step: _ORDER.index(step.action))
    return Evolution(
        tuple(steps),
        tuple(one for one in found if isinstance(one, Obstacle)),
        tuple(one for one in found if isinstance(one, tuple)),
    )


def _struct(path: Path, table: Type, wanted: tuple[Field, ...]) -> Iterator[_Found]:
    have = dict(table.members)
    names = {field.name for field in wanted}
    used: set[str] = set()
    for field in wanted:
        column = _column(field, have, names)
        if column is None:
            yield _missing(path, field, have)
            continue
        used.add(column)
        if column != field.name:
            yield Step("rename", (*path, column), name=field.name)
        yield from _value((*path, column), have[column], field)
    yield from ((*path, name) for name in have if name not in used)


def _column(field: Field, have: Collection[str], names: Collection[str]) -> str | None:
    """The table's column for a field: its name, or a former name that no other field has taken."""
    former = (alias for alias in field.aliases if alias in have and alias not in names)
    return field.name if field.name in have else next(former, None)


def _missing(path: Path, field: Field, have: Collection[str]) -> Step | Obstacle:
    twin = next((name for name in have if name.lower() == field.name.lower()), None)
    if twin is not None:
        fix = f"name the field {twin}, or give it the alias {twin} to rename the column"
        return Obstacle((*path, field.name), f"the table has {twin}, which differs only in case", fix)
    return Step("add", (*path, field.name), type=field.type, comment=field.description)


def _value(path: Path, table: Type, field: Field) -> Iterator[_Found]:
    wanted = parse_type(field.type)
    if table.name == wanted.name == "struct":
        yield from _struct(path, table, members(field))
    elif table.name == wanted.name and table.name in ("array", "map") and _same_keys(table, wanted):
        inner = element(field)
        part = "element" if table.name == "array" else "value"
        if inner is not None:
            yield from _value((*path, part), table.element if part == "element" else table.value, inner)
    else:
        yield from _plain(path, table, wanted)


def _same_keys(table: Type, wanted: Type) -> bool:
    return table.name != "map" or table.key == wanted.key


def _plain(path: Path, table: Type, wanted: Type) -> Iterator[_Found]:
    found = relation(_stored(table), _stored(wanted))
    if found == "widened":
        yield Step("widen", path, type=str(_stored(wanted)))
    elif found in ("narrowed", "changed"):
        fix = f"add a new field of type {wanted}, fill both, move the readers, then remove the old one"
        yield Obstacle(path, f"{table} cannot become {wanted} in place", fix)


def _stored(kind: Type) -> Type:
    """Iceberg has no type smaller than int."""
    return Type("int") if kind.name in ("tinyint", "smallint") else kind
