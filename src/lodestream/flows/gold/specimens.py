"""Generated rows for a query: few values, so that rows meet in joins and groups, and those that the query asks for."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lodestream.pipeline.gold.pieces import quoted

Row = tuple[Any, ...]
_ROWS, _MOVING = 40, 24
_DAY = datetime(2024, 1, 1)
_TEXT = re.compile(r"'((?:[^'\\]|\\.|'')*)'|\"((?:[^\"\\]|\\.)*)\"")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")
_MOST_LITERALS = 12
_FLOATS = {"rich": [-1.5, 0.0, -0.0, 1.0, 2.0, 2.5, 10.0], "digits": [0.0, -0.0, 1.0, 2.5]}
_NO_NUMBERS = (float("nan"), float("inf"), float("-inf"))


class Specimens:
    """The rows of each input before and after a change, and the change itself (rows with their weight)."""

    def __init__(self, shapes: Mapping[str, StructType], query: str, manner: str) -> None:
        self.shapes = shapes
        self._chance = random.Random(manner)  # noqa: S311 (test rows, no secret)
        # Numbers that are none, beside rich values: a query that refuses them is tried without.
        self._odd = manner == "odd"
        self._manner = "rich" if self._odd else manner
        self._alone = False
        self._texts = [_unescaped(found) for found in _literals(_TEXT, query)]
        self._numbers = [Decimal(found) for found in _literals(_NUMBER, query) if len(found) < 10]
        self.before: dict[str, list[Row]] = {}
        self.after: dict[str, list[Row]] = {}
        self.changes: dict[str, list[Row]] = {}
        for name, shape in shapes.items():
            self._fill(name, shape)

    def _fill(self, name: str, shape: StructType) -> None:
        rows = [self._row(shape) for _ in range(_ROWS)]
        rows += self._chance.sample(rows, 2)  # the same row twice
        going = [self._like(self._chance.choice(rows), shape) for _ in range(_MOVING)]
        coming = [self._like(self._chance.choice([*rows, *going]), shape) for _ in range(_MOVING)]
        going, coming = self._marked(going, shape), self._marked(coming, shape)
        if self._odd:
            rows, going, coming = _signed(rows, 0.0), _signed(going, -0.0), _signed(coming, -0.0)
        self.before[name] = [*rows, *going]
        self.after[name] = [*rows, *coming]
        self.changes[name] = [(*row, -1) for row in going] + [(*row, 1) for row in coming]

    def _marked(self, rows: list[Row], shape: StructType) -> list[Row]:
        """In each column one row has a value of its own, and one has none: groups and matches come and go with them."""
        marked = [list(row) for row in rows]
        for place, field in enumerate(shape):
            marked[(2 * place) % len(rows)][place] = self._value(field.dataType, alone=True)
            if field.nullable:
                marked[(2 * place + 1) % len(rows)][place] = None
        return [tuple(row) for row in marked]

    def _row(self, shape: StructType) -> Row:
        return tuple(self._field(field) for field in shape)

    def _like(self, row: Row, shape: StructType) -> Row:
        """An update: most columns stay, so that rows leave one group for another."""
        kept = zip(row, shape, strict=True)
        return tuple(value if self._chance.random() < 0.6 else self._field(field) for value, field in kept)

    def _field(self, field: StructField) -> Any:
        value = self._value(field.dataType)
        return self._value(field.dataType, alone=True) if value is None and not field.nullable else value

    def _value(self, kind: DataType, *, alone: bool = False) -> Any:
        self._alone = alone
        if not alone and self._chance.random() < (0.15 if self._manner == "rich" else 0.05):
            return None
        for known, make in _MAKERS.items():
            if isinstance(kind, known):
                return make(self, kind)
        return None

    def _rare(self) -> bool:
        """A value that hardly another row has: groups of one row come and go with it."""
        return self._alone or self._chance.random() < 0.1

    def _whole(self, kind: DataType) -> int:
        most = 127 if isinstance(kind, ByteType) else 30_000 if isinstance(kind, ShortType) else 2**31 - 1
        asked = [int(n) + step for n in self._numbers for step in (-1, 0, 1) if n == int(n) and n < most]
        if self._manner == "large":
            return self._chance.randrange(101, 105 if not self._rare() else 127)
        if self._rare():
            return self._chance.randrange(4, 90)
        few = [1, 2, 3] if self._manner != "rich" else [-1, 0, 1, 1, 2, 2, 3, 7]
        return self._chance.choice(few if self._manner in ("tame", "dates") else few * 3 + asked)

    def _decimal(self, kind: DataType) -> Decimal | None:
        precision, scale = (kind.precision, kind.scale) if isinstance(kind, DecimalType) else (10, 2)
        unit = Decimal(1).scaleb(-scale)
        asked = [n for n in self._numbers if self._manner == "rich"]
        value = self._chance.choice([Decimal(n) for n in (1, 2, 3)] * 2 + [Decimal("2.5"), Decimal("7.25"), *asked])
        if self._rare():
            value = Decimal(self._chance.randrange(400, 9000)) / 100
        if self._manner == "large" and precision - scale > 2:
            value = Decimal(self._chance.randrange(101, 127 if self._alone else 105))
        if self._manner == "rich" and self._chance.random() < 0.2:
            value = -value
        value = value.quantize(unit)
        return value if len(value.as_tuple().digits) <= precision else None

    def _float(self, kind: DataType) -> float:
        if self._manner == "large":
            return float(self._chance.randrange(101, 127 if self._alone else 105))
        if self._rare():
            return self._chance.randrange(400, 9000) / 100
        if self._odd and self._chance.random() < 0.03:
            return self._chance.choice(_NO_NUMBERS)
        few = _FLOATS.get(self._manner, [1.0, 2.0, 2.5])
        return float(self._chance.choice([*few, *(float(n) for n in self._numbers if self._manner == "rich")]))

    def _text(self, kind: DataType) -> str:
        if self._manner == "dates":
            return f"2024-01-{self._chance.randrange(1, 29 if self._rare() else 4):02d}"
        if self._manner == "large":
            return str(self._chance.randrange(101, 127 if self._rare() else 105))
        if self._rare():
            number = self._chance.randrange(11, 99)
            return str(number) if self._manner == "digits" else f"Only {number}"
        if self._manner == "digits":
            return self._chance.choice(["1", "2", "3", "10"])
        few = ["a", "b", "x", "2024-01-02"] if self._manner == "tame" else ["a", "b", "X", "ab c", "o'hara", ""]
        return self._chance.choice(few + self._texts * 2)

    def _date(self, kind: DataType) -> date:
        return (_DAY + timedelta(days=self._chance.randrange(-1, 4))).date()

    def _moment(self) -> datetime:
        return _DAY + timedelta(minutes=self._chance.choice([0, 1, 5, 30, 59, 60, 61, 600, 1439, 1440, 2900]))

    def _many(self, kind: DataType) -> Any:
        if isinstance(kind, ArrayType):
            return [self._value(kind.elementType) for _ in range(self._chance.randrange(3))]
        if isinstance(kind, MapType):
            keys = {key for _ in range(2) if (key := self._value(kind.keyType)) is not None}
            return [(key, self._value(kind.valueType)) for key in keys]
        if isinstance(kind, StructType):
            return {field.name: self._value(field.dataType) for field in kind}
        return None


_MAKERS: dict[Any, Callable[[Specimens, DataType], Any]] = {
    (ByteType, ShortType, IntegerType, LongType): Specimens._whole,
    DecimalType: Specimens._decimal,
    (FloatType, DoubleType): Specimens._float,
    StringType: Specimens._text,
    BooleanType: lambda self, _: self._chance.random() < 0.5,
    DateType: Specimens._date,
    TimestampNTZType: lambda self, _: self._moment(),
    TimestampType: lambda self, _: self._moment().replace(tzinfo=UTC),
    BinaryType: lambda self, kind: self._text(kind).encode(),
    (ArrayType, MapType, StructType): Specimens._many,
}


def _signed(rows: list[Row], zero: float) -> list[Row]:
    """What changes has zeros of another sign than what stays: they are equal, and no group of zeros changes whole."""
    return [tuple(zero if isinstance(one, float) and one == 0 else one for one in row) for row in rows]


def rows_as_frame(spark: SparkSession, rows: list[Row], schema: StructType) -> DataFrame:
    """Rows by way of Arrow: no Python worker has to start, and no local time zone bends a moment.

    A column of a type that no values can be made up for is null.
    """
    fields = [StructField(field.name, field.dataType) for field in schema]
    places = [place for place, field in enumerate(fields) if _makeable(field.dataType)]
    made = StructType([fields[place] for place in places])
    arrow = to_arrow_schema(made)
    arrays = [
        pa.array([row[place] for row in rows], type=field.type) for place, field in zip(places, arrow, strict=True)
    ]
    frame = spark.createDataFrame(pa.Table.from_arrays(arrays, schema=arrow), made)
    if len(places) == len(fields):
        return frame
    return frame.select(
        *[
            col(quoted(field.name)) if place in places else lit(None).cast(field.dataType).alias(field.name)
            for place, field in enumerate(fields)
        ]
    )


def _makeable(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _makeable(kind.elementType)
    if isinstance(kind, MapType):
        return _makeable(kind.keyType) and _makeable(kind.valueType)
    if isinstance(kind, StructType):
        return all(_makeable(field.dataType) for field in kind)
    return any(isinstance(kind, known) for known in _MAKERS)


def _literals(pattern: re.Pattern[str], text: str) -> list[str]:
    found = (match.group(match.lastindex or 0) for match in pattern.finditer(text))
    return list(dict.fromkeys(found))[:_MOST_LITERALS]


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text.replace("''", "'"))
