"""Run what the user declared: a function over DataFrames, or a query over the inputs by their names."""

from __future__ import annotations

import traceback
import uuid
from collections.abc import Mapping
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp, parse_one

from lodestream.errors import UserCodeError
from lodestream.pipeline import Table


def transform(spark: SparkSession, table: Table, frames: Mapping[str, DataFrame]) -> DataFrame:
    """The declared rows over the given inputs, keyed by the inputs' full names in declared order."""
    if table.sql is not None:
        return run_query(spark, table, table.sql, frames)
    if table.function is None:
        raise UserCodeError(f"{table.name} declares neither a function nor a query")
    try:
        result = table.function(*frames.values())
    except Exception as error:
        raise UserCodeError(
            f"{table.name}: {type(error).__name__} in {_where(table)}",
            why="".join(traceback.format_exception(error)).strip(),
            fix="correct the function; nothing of the batch was published",
        ) from error
    if not isinstance(result, DataFrame):
        raise UserCodeError(
            f"{table.name}: {_where(table)} returned {type(result).__name__}, not a DataFrame",
            fix="return the DataFrame at the end of the function",
        )
    return result


def run_query(spark: SparkSession, table: Table, sql: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """The query with each input's name standing for the given rows instead of the stored table."""
    views = {name: f"lode_{uuid.uuid4().hex}" for name in frames}
    for name, frame in frames.items():
        frame.createOrReplaceTempView(views[name])
    try:
        return spark.sql(_renamed(sql, views))
    except AnalysisException as error:
        raise UserCodeError(
            f"{table.name}: the query does not fit its inputs ({_where(table)})",
            why=str(error).strip().splitlines()[0],
            fix="correct the query; nothing of the batch was published",
        ) from error
    finally:
        for view in views.values():
            spark.catalog.dropTempView(view)


def _renamed(sql: str, views: Mapping[str, str]) -> str:
    tree = parse_one(sql, dialect="spark")
    for reference in list(tree.find_all(exp.Table)):
        name = ".".join(part.name for part in reference.parts)
        if name in views:
            # The bare last name stays valid in the query: `trips.fare` after FROM silver.trips.
            alias = reference.alias or reference.name
            reference.replace(exp.alias_(exp.to_table(views[name]), alias, table=True))
    return tree.sql(dialect="spark")


def _where(table: Table) -> str:
    location = table.location
    place = table.sql_path or Path(location.file)
    return f"{place.name}" if table.sql_path else f"{place.name}:{location.line}"
