"""A raw row in its dead letter, and out of it again."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, from_json, lit, struct, to_json
from pyspark.sql.types import BinaryType, DataType, StructType

from lodestream.names import CARRIED, EVENT
from lodestream.sources.coordinates import about_columns, arrival_columns, arrival_in, marks_in

# What a letter has a column for. Rows of a source that has others are kept whole, as JSON.
COORDINATES = {
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "file": "string",
    "row": "bigint",
}
# Where an event stands, of these.
SOURCE_PLACE = ("topic", "partition", "offset", "file", "row")
# Every digit of a time, so that a row of another table comes back as it was.
_JSON = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def enclosed(carried: DataType) -> dict[str, Column]:
    """The letter's columns for the raw row in `_lode`; a row of another table is kept whole, as JSON."""
    fields = carried if isinstance(carried, StructType) else StructType()
    own = [field.name for field in fields if field.name != EVENT]
    known = {
        name: (col(f"{CARRIED}.`{name}`") if name in own else lit(None)).cast(kind)
        for name, kind in COORDINATES.items()
    }
    if "timestamp" not in own and (arrival := arrival_in(own)) is not None:
        known["timestamp"] = col(f"{CARRIED}.`{arrival}`")
    if not is_bronze(fields):
        whole = struct(*[col(f"{CARRIED}.`{name}`") for name in own])
        known |= {name: lit(None).cast(COORDINATES[name]) for name in known}
        known["value"] = to_json(whole, _JSON).cast("binary")
    return known


def restored(letters: DataFrame, schema: StructType, beside: Sequence[str] = ()) -> DataFrame:
    """Rows of the input with this schema, from their letters; the columns `beside` are kept."""
    kept = [col(name) for name in beside]
    if is_bronze(schema):
        letters = letters.withColumns({name: col("timestamp") for name in arrival_columns()})
        held = [
            (col(field.name) if field.name in letters.columns else lit(None)).cast(field.dataType).alias(field.name)
            for field in schema
        ]
        return letters.select(*held, *kept)
    # A row that no longer fits its table must fail, not come back with nulls.
    row = from_json(col("value").cast("string"), schema, {**_JSON, "mode": "FAILFAST"})
    return letters.select(row.alias("_row"), *kept).select("_row.*", *kept)


def records(rows: DataFrame) -> DataFrame:
    """Without what a Bronze table says about its source: the header lines of files, for instance, and empty ones."""
    marked = marks_in(rows.columns)
    return rows.where(marked.records) if marked and marked.records else rows


def source_marks(rows: DataFrame) -> DataFrame | None:
    """What `records` leaves out; None when it leaves nothing out."""
    marked = marks_in(rows.columns)
    return rows.where(f"NOT ({marked.records})") if marked else None


def is_bronze(fields: StructType) -> bool:
    """Whether a row is raw bytes with coordinates, all of which a letter has a place for."""
    names = {field.name for field in fields} - {EVENT}
    raw = "value" in names and fields["value"].dataType == BinaryType()
    return raw and names <= {*COORDINATES, *about_columns()}
