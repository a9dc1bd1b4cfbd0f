"""Rows computed once and kept apart from the tables they were read from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame

_CONSTRAINTS = "spark.sql.constraintPropagation.enabled"


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
