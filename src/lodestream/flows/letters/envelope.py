"""A dead letter: a raw row with its reasons, out of it again, and beside it what became of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import array, coalesce, col, count, current_timestamp, expr, from_json, lit, struct, to_json
from pyspark.sql.types import DataType, StructType

from lodestream.flows.letters.attempts import BESIDE
from lodestream.names import CARRIED, EVENT, REASONS
from lodestream.sources.kinds import identity_in, located_by, marks_in
from lodestream.tables.groupable import EXACT_JSON, has_maps
from lodestream.tables.notes import ATTEMPT
from lodestream.tables.snapshot import Stamp

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
DDL = (
    "letter STRING, key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, topic STRING, "
    "partition INT, offset BIGINT, timestamp TIMESTAMP, file STRING, row BIGINT, reasons ARRAY<STRING>, "
    "contract STRING, run STRING, batch BIGINT, attempt STRING, dead_at TIMESTAMP, state STRING, "
    f"{BESIDE} INT"
)
# Where an event stands, of these.
SOURCE_COORDINATES = ("topic", "partition", "offset", "file", "row")
_OF = "_lode_x_event"


def enclosed(carried: DataType) -> dict[str, Column]:
    """The letter's columns for the raw row in `_lode`; a row of another table is kept whole, as JSON."""
    fields = carried if isinstance(carried, StructType) else StructType()
    own = [field.name for field in fields if field.name != EVENT]
    known = {
        name: (col(f"{CARRIED}.`{name}`") if name in own else lit(None)).cast(kind)
        for name, kind in COORDINATES.items()
    }
    if "timestamp" not in own and (arrival := _arrival(own)) is not None:
        known["timestamp"] = col(f"{CARRIED}.`{arrival}`")
    if not is_bronze(fields):
        whole = struct(*[col(f"{CARRIED}.`{name}`") for name in own])
        known |= {name: lit(None).cast(COORDINATES[name]) for name in known}
        # As exact JSON, so that a row of another table comes back as it was; a null is left out where nothing needs it.
        options = EXACT_JSON if has_maps(fields) else {**EXACT_JSON, "ignoreNullFields": "true"}
        known["value"] = to_json(whole, options).cast("binary")
    return known


def restored(letters: DataFrame, schema: StructType, beside: Sequence[str] = ()) -> DataFrame:
    """Rows of the input with this schema, from their letters; the columns `beside` are kept."""
    kept = [col(name) for name in beside]
    if is_bronze(schema):
        arrival = _arrival(schema.names)
        letters = letters.withColumn(arrival, col("timestamp")) if arrival else letters
        held = [
            (col(field.name) if field.name in letters.columns else lit(None)).cast(field.dataType).alias(field.name)
            for field in schema
        ]
        return letters.select(*held, *kept)
    # A row that no longer fits its table must fail, not come back with nulls.
    row = from_json(col("value").cast("string"), schema, {**EXACT_JSON, "mode": "FAILFAST"})
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
    """Whether a row is raw bytes with coordinates, all of which a letter has columns for as they are."""
    kinds = {field.name: field.dataType.simpleString() for field in fields if field.name != EVENT}
    about = _about(kinds)
    return "value" in kinds and all(COORDINATES.get(name) == kind or name in about for name, kind in kinds.items())


def _about(names: Collection[str]) -> Collection[str]:
    """Columns that a letter may leave out: elsewhere than in rows of that very source, the same names are data."""
    located = located_by(names)
    # A letter has one time: where the source's own takes its place, when the row arrived has none.
    return located.about if located and (located.arrival == "timestamp" or "timestamp" not in names) else ()


def _arrival(names: Collection[str]) -> str | None:
    """The column that says when a located row came, where a letter's own time stands for it."""
    located = located_by(names)
    return located.arrival if located and located.arrival in names else None


def refused(letters: DataFrame, stamp: Stamp, contract: str | None) -> DataFrame:
    return letters.select(
        # An id of its own: one event may give several letters, and its coordinates may come again with a new topic.
        expr("replace(uuid(), '-', '')").alias("letter"),
        *[column.alias(name) for name, column in enclosed(letters.schema[CARRIED].dataType).items()],
        col(REASONS).alias("reasons"),
        *_made_by(stamp, contract),
        lit("open").alias("state"),
        (col(BESIDE) if BESIDE in letters.columns else lit(None)).cast("int").alias(BESIDE),
    )


def decided(letters: DataFrame, stamp: Stamp, contract: str | None, state: str, note: str | None) -> DataFrame:
    """A row beside the letter's own: what became of it. The bytes stay where they are."""
    return letters.select(
        "letter",
        *[
            col(name) if name in SOURCE_COORDINATES else lit(None).cast(kind).alias(name)
            for name, kind in COORDINATES.items()
        ],
        (array(lit(note)) if note else lit(None)).cast("array<string>").alias("reasons"),
        *_made_by(stamp, contract),
        lit(state).alias("state"),
        lit(None).cast("int").alias(BESIDE),
    )


def _made_by(stamp: Stamp, contract: str | None) -> list[Column]:
    return [
        lit(contract).cast("string").alias("contract"),
        lit(stamp.run).alias("run"),
        lit(stamp.batch or None).cast("bigint").alias("batch"),
        lit(stamp.notes.get(ATTEMPT)).cast("string").alias("attempt"),
        current_timestamp().alias("dead_at"),
    ]


def with_beside(letters: DataFrame, kept: Callable[[], DataFrame], *, keyed: bool, multiplies: bool) -> DataFrame:
    """The letters with `beside`: without keys, a replay of such an event would bring the rows that are there again.

    Null where keys tell rows apart, so that nobody has to know.
    """
    if keyed:
        return letters.withColumn(BESIDE, lit(None).cast("int"))
    if not multiplies:
        return letters.withColumn(BESIDE, lit(0))
    carried = letters.schema[CARRIED].dataType
    coordinates = event_coordinates(carried)
    event = coordinates if coordinates is not None else enclosed(carried)["value"]
    # A column of the user's that has the name is in the raw row; here it would be taken for ours.
    marked = letters.drop(BESIDE).withColumn(_OF, event)
    theirs = kept().select(event.alias(_OF)).join(marked.select(_OF).distinct(), _OF, "left_semi")
    counted = theirs.groupBy(_OF).agg(count(lit(1)).cast("int").alias(BESIDE))
    found = marked.join(counted, _OF, "left").withColumn(BESIDE, coalesce(col(BESIDE), lit(0)))
    return found.drop(_OF)


def event_coordinates(carried: object) -> Column | None:
    """Where an event stands in Bronze. Rows of another table may carry such columns as well, several the same."""
    coordinates = identity_in(carried.names) if isinstance(carried, StructType) and is_bronze(carried) else ()
    return struct(*[col(f"{CARRIED}.{name}") for name in coordinates]) if coordinates else None
