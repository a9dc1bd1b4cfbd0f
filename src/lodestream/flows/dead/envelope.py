"""A raw row in its dead letter, and out of it again."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, from_json, lit, struct, to_json
from pyspark.sql.types import BinaryType, DataType, StructType

from lodestream.flows.silver.judge import CARRIED

# Which event a row came from, while letters are replayed: carried beside the raw columns, never written.
EVENT = "_lode_event"

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
# Bronze columns that say nothing about a record, only about the file it came from.
_ABOUT_FILES = ("modified", "size")
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
    if "modified" in own and "timestamp" not in own:
        # When a file was written is when its records arrived.
        known["timestamp"] = col(f"{CARRIED}.modified")
    if not is_bronze(fields):
        whole = struct(*[col(f"{CARRIED}.`{name}`") for name in own])
        known |= {name: lit(None).cast(COORDINATES[name]) for name in known}
        known["value"] = to_json(whole, _JSON).cast("binary")
    return known


def restored(letters: DataFrame, schema: StructType, beside: Sequence[str] = ()) -> DataFrame:
    """Rows of the input with this schema, from their letters; the columns `beside` are kept."""
    kept = [col(name) for name in beside]
    if is_bronze(schema):
        letters = letters.withColumn("modified", col("timestamp"))
        held = [
            (col(field.name) if field.name in letters.columns else lit(None)).cast(field.dataType).alias(field.name)
            for field in schema
        ]
        return letters.select(*held, *kept)
    # A row that no longer fits its table must fail, not come back with nulls.
    row = from_json(col("value").cast("string"), schema, {**_JSON, "mode": "FAILFAST"})
    return letters.select(row.alias("_row"), *kept).select("_row.*", *kept)


def records(rows: DataFrame) -> DataFrame:
    """Without what a Bronze table of files says about the files themselves: their header lines, and the empty ones."""
    return rows.where(col("row") > 0) if has_file_marks(rows) else rows


def file_marks(rows: DataFrame) -> DataFrame:
    """What `records` leaves out."""
    return rows.where(col("row") <= 0)


def has_file_marks(rows: DataFrame) -> bool:
    return {"value", "file", "row", *_ABOUT_FILES} <= set(rows.columns)


def is_bronze(fields: StructType) -> bool:
    """Whether a row is raw bytes with coordinates, all of which a letter has a place for."""
    names = {field.name for field in fields} - {EVENT}
    raw = "value" in names and fields["value"].dataType == BinaryType()
    return raw and names <= {*COORDINATES, *_ABOUT_FILES}
