"""The rows of a dead-letter table: a letter as it was refused, and beside it what became of it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import array, col, current_timestamp, expr, lit

from lodestream.flows.letters.attempts import BESIDE
from lodestream.flows.letters.envelope import COORDINATES, SOURCE_PLACE, enclosed
from lodestream.names import CARRIED, REASONS
from lodestream.tables.notes import ATTEMPT
from lodestream.tables.snapshot import Stamp

DDL = (
    "letter STRING, key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, topic STRING, "
    "partition INT, offset BIGINT, timestamp TIMESTAMP, file STRING, row BIGINT, reasons ARRAY<STRING>, "
    "contract STRING, run STRING, batch BIGINT, attempt STRING, dead_at TIMESTAMP, state STRING, "
    f"{BESIDE} INT"
)


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
            col(name) if name in SOURCE_PLACE else lit(None).cast(kind).alias(name)
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
