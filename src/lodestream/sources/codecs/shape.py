"""The typed columns that a codec gives, and where in the event each one is found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from lodestream.contracts import quoting
from lodestream.contracts.model import Field
from lodestream.contracts.types import Type, parse_type, struct
from lodestream.contracts.violations import hidden
from lodestream.errors import DeclarationError

_ARROW = {
    "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "string": pa.string(), "binary": pa.binary(),
    "date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us"),
    "varchar": pa.string(), "char": pa.string(),
}  # fmt: skip
TEMPORAL = ("date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True, slots=True)
class Column:
    """One decoded column: its type, the names it goes by in the event, and what is allowed when reading it."""

    name: str
    type: Type
    sources: tuple[str, ...]
    any_case: bool = False
    scalar_text: bool = False  # any scalar is taken as its text: the contract converts it later, by its own rules
    non_finite: bool = False
    hidden: bool = False  # the contract masks it: its values are not shown in reasons
    half_up: bool = False  # decimals with more places are rounded, from the digits that the event has


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of a decoded row, in order."""

    columns: tuple[Column, ...]

    @property
    def type(self) -> Type:
        return struct(tuple((column.name, column.type) for column in self.columns))

    @property
    def ddl(self) -> str:
        return ", ".join(f"{quoting.name(column.name)} {column.type}" for column in self.columns)

    def hiding(self, fields: Iterable[Field]) -> Shape:
        """With the columns hidden that these fields mask, by any name they go by."""
        masked = [(field.name, field.source_name, *field.aliases) for field in fields if hidden(field)]
        names = {name.lower() for known in masked for name in known}
        columns = [
            replace(one, hidden=one.hidden or any(s.lower() in names for s in one.sources)) for one in self.columns
        ]
        return Shape(tuple(columns))

    @property
    def arrow(self) -> pa.StructType:
        return arrow_type(self.type)


def shape_of(schema: str | Iterable[Field]) -> Shape:
    """The shape that a Spark DDL text or the fields of a contract ask for."""
    if not isinstance(schema, str):
        found = Shape(tuple(_from_field(field) for field in schema))
        _refuse_odd_keys(found.type)
        return found
    try:
        kind = parse_type(f"struct<{schema}>")
        _refuse_twice([name for name, _ in kind.members])
        found = Shape(tuple(Column(name, member, (name,)) for name, member in kind.members))
        arrow_type(kind)
    except ValueError as error:
        raise DeclarationError(
            f"the schema {schema[:60]!r} cannot be decoded to",
            why=str(error),
            fix=_correction(str(error)),
        ) from None
    _refuse_odd_keys(kind)
    return found


def _refuse_odd_keys(kind: Type) -> None:
    """Events name their entries by text; another key would only be noticed when rows come."""
    if kind.name == "map" and kind.key.name != "string":
        raise DeclarationError(
            f"{kind} cannot be decoded to",
            why="the names in an event are text",
            fix=f"make it map<string,{kind.value}>, and convert its keys in the table's function",
        )
    for _, member in kind.members:
        _refuse_odd_keys(member)


def _refuse_twice(names: list[str]) -> None:
    """A table tells columns apart by their letters alone, whatever their case."""
    lower = [name.lower() for name in names]
    twice = next((name for place, name in enumerate(names) if name.lower() in lower[:place]), None)
    if twice is not None:
        first = names[lower.index(twice.lower())]
        raise ValueError(f"{first} and {twice} are one name: the case of letters tells no columns apart")


def _correction(why: str) -> str:
    if why.startswith("decimal("):
        return "a decimal has at most 38 digits: decimal(38,2), or string for a number that is only kept"
    if "are one name" in why:
        return "take one of them out, or read both in a contract, with a name of its own for each"
    return 'write it as "id bigint, at timestamp"'


def _from_field(field: Field) -> Column:
    """What a field reads in another way than its own type arrives as that, and the contract converts it."""
    reading, kind = field.reading, parse_type(field.type)
    text = reading.coerce and not kind.nested
    if text or (kind.name in TEMPORAL and (reading.zone or reading.format) and not reading.epoch):
        kind = Type("string")
    elif reading.epoch:
        kind = Type("bigint")
    sources = (field.source_name, *field.aliases)
    half_up = reading.rounding == "half_up"
    return Column(field.source_name, kind, sources, reading.any_case, text, reading.non_finite, hidden(field), half_up)


def arrow_type(kind: Type) -> pa.DataType:
    """The Arrow type that Spark takes as this type. Raises ValueError for one that no codec can give."""
    match kind.name:
        case "decimal":
            return pa.decimal128(kind.precision, kind.scale)
        case "array":
            return pa.list_(pa.field("element", arrow_type(kind.element)))
        case "map":
            return pa.map_(arrow_type(kind.key), arrow_type(kind.value))
        case "struct":
            return pa.struct([pa.field(name, arrow_type(member)) for name, member in kind.members])
    if kind.name not in _ARROW:
        raise ValueError(f"{kind} is not a type that a codec can give")
    return _ARROW[kind.name]
