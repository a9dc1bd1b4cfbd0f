"""Replace the rows with given keys in one commit: what goes and what comes become visible together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr, lit

from lodestream.pipeline.gold.pieces import quoted
from lodestream.tables.find import set_aside
from lodestream.tables.jvm import catalog_errors
from lodestream.tables.lake import Lake

_GONE = "_lode_gone"
_PROPERTY = "spark.sql.iceberg.snapshot-property."


def replace_rows(
    lake: Lake,
    name: str,
    keys: Sequence[tuple[str, str]],
    touched: DataFrame,
    rows: DataFrame,
    branch: str,
    properties: Mapping[str, str],
) -> None:
    """Delete the stored rows whose keys are in `touched` and insert `rows`; only files that hold such rows change.

    `keys` pairs a column of `touched` with SQL over a stored row. `touched` names each key once: null is a key too.
    """
    # Spark runs the source of a merge twice, for the files and for the rows: computed once, both see the same.
    source = set_aside(_going(keys, touched, rows).unionAll(_coming(keys, touched, rows)))
    # The source's columns have names of their own, so a plain name is always one of the stored table.
    same = " AND ".join(f"{stored} <=> _lode_k{number}" for number, (_, stored) in enumerate(keys))
    inserted = {quoted(column): col(f"_lode_v{number}") for number, column in enumerate(rows.columns)}
    merge = (
        source.mergeInto(f"{lake.identifier(name)}.`branch_{branch}`", expr(f"{_GONE} AND {same}"))
        .whenMatched()
        .delete()
        .whenNotMatched(expr(f"NOT {_GONE}"))
        .insert(inserted)
    )
    with catalog_errors(f"replacing rows of {name}"), snapshot_properties(lake.spark, properties):
        merge.merge()


@contextmanager
def snapshot_properties(spark: SparkSession, properties: Mapping[str, str]) -> Iterator[None]:
    """A row-level command takes its snapshot's properties from the session, which is the flow's own."""
    for key, value in properties.items():
        spark.conf.set(_PROPERTY + key, value)
    try:
        yield
    finally:
        for key in properties:
            spark.conf.unset(_PROPERTY + key)


def _going(keys: Sequence[tuple[str, str]], touched: DataFrame, rows: DataFrame) -> DataFrame:
    named = [col(quoted(key)).alias(f"_lode_k{number}") for number, (key, _) in enumerate(keys)]
    absent = [lit(None).cast(field.dataType).alias(f"_lode_v{number}") for number, field in enumerate(rows.schema)]
    return touched.select(lit(True).alias(_GONE), *named, *absent)


def _coming(keys: Sequence[tuple[str, str]], touched: DataFrame, rows: DataFrame) -> DataFrame:
    absent = [
        lit(None).cast(touched.schema[key].dataType).alias(f"_lode_k{number}") for number, (key, _) in enumerate(keys)
    ]
    values = [col(quoted(name)).alias(f"_lode_v{number}") for number, name in enumerate(rows.columns)]
    return rows.select(lit(False).alias(_GONE), *absent, *values)
