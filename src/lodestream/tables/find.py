"""Find the stored rows of a few keys without reading the others, and compute them apart from their table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame
from pyspark.sql.types import ByteType, DataType, IntegerType, LongType, ShortType, StringType

from lodestream.contracts.quoting import in_list
from lodestream.contracts.quoting import name as quoted
from lodestream.tables.snapshot import Snapshot

# Values of these types are the same as literals, so a filter on them loses no row. Not dates: Python has none for years
# beyond 1 to 9999, and one such value would stop its table.
EXACT = (ByteType, ShortType, IntegerType, LongType, StringType)
# Iceberg holds lists up to this length against the ranges of files and row groups; longer ones it lets pass.
_MOST_LISTED = 200
MOST_KEYS = 4_000

_SMALLEST_SPLIT = 16 * 1024 * 1024
# Whole row groups are read for a few rows of each: that is much, in the smallest batch too. Interpreted, every row
# would be copied before it is held against the keys. The keys are no part of the code, so it is compiled once.
_COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.optimizer.inSetSwitchThreshold": "0",
}
_CONSTRAINTS = "spark.sql.constraintPropagation.enabled"


def same_again(values: Iterable[object]) -> bool:
    """Whether texts that Python had are still what is stored: bytes that are no UTF-8 reach it as replacement marks."""
    return not any(isinstance(one, str) and "\ufffd" in one for one in values)


def quick_look(at: Snapshot, cores: int) -> dict[str, str]:
    """Read options for a few rows among many files: a task for each core, not one for every few files.

    Nearly every file is dismissed by its footer, so its size says little about the work.
    """
    size = int(at.summary.get("total-files-size", "0"))
    # A little more than each core's part, because files are not cut: else one would be left over for a task of its own.
    return {"split-size": str(max(_SMALLEST_SPLIT, size * 5 // (4 * cores))), "file-open-cost": str(64 * 1024)}


def among(column: str, values: Sequence[object], kind: DataType) -> str | None:
    """SQL that every row with one of the values satisfies; None when a list would not help.

    `column` is SQL. Sorted, so that each part of the list covers a narrow range of a sorted table.
    """
    if not values or len(values) > MOST_KEYS or not isinstance(kind, EXACT) or not same_again(values):
        return None
    ordered = sorted(values)  # type: ignore[type-var]
    lists = [ordered[start : start + _MOST_LISTED] for start in range(0, len(ordered), _MOST_LISTED)]
    return "(" + " OR ".join(f"{column} IN {in_list(some, kind.simpleString())}" for some in lists) + ")"


def rows_of(stored: DataFrame, keys: Sequence[str], wanted: DataFrame, values: Sequence[object]) -> DataFrame:
    """The stored rows whose keys are in `wanted`; `values` are those of the first key, when they are few."""
    listed = among(quoted(keys[0]), values, stored.schema[keys[0]].dataType)
    narrowed = planned_apart(stored.where(listed), _COMPILED) if listed else stored
    if listed and len(keys) == 1:
        return narrowed
    return narrowed.join(wanted.select(*map(quoted, keys)).distinct(), list(keys), "left_semi")


def set_aside(rows: DataFrame) -> DataFrame:
    """A cached plan over a table would be computed again when that table is written; what is set aside never is.

    Spark 4.1 also keeps what it knew about the columns, and trips over it ("key not found") when the rows are read in
    two branches of a union: so it is not told.
    """
    with _settings(rows, {_CONSTRAINTS: "false"}):
        return rows.localCheckpoint()


def planned_apart(rows: DataFrame, settings: Mapping[str, str]) -> DataFrame:
    """The same rows, planned with settings of their own and computed once, by the query that they become a part of."""
    with _settings(rows, {_CONSTRAINTS: "false", **settings}):
        return rows.localCheckpoint(eager=False)


@contextmanager
def _settings(rows: DataFrame, settings: Mapping[str, str]) -> Iterator[None]:
    conf = rows.sparkSession.conf
    before = {key: conf.get(key) for key in settings}
    for key, value in settings.items():
        conf.set(key, value)
    try:
        yield
    finally:
        for key, held in before.items():
            conf.set(key, held or "")
