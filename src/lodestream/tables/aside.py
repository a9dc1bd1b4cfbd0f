"""Rows computed once and kept apart from the tables they were read from."""

from __future__ import annotations

from pyspark.sql import DataFrame

_CONSTRAINTS = "spark.sql.constraintPropagation.enabled"


def set_aside(rows: DataFrame) -> DataFrame:
    """A cached plan over a table would be computed again when that table is written; what is set aside never is.

    Spark 4.1 also keeps what it knew about the columns, and trips over it ("key not found") when the rows are read in
    two branches of a union: so it is not told.
    """
    conf = rows.sparkSession.conf
    before = conf.get(_CONSTRAINTS)
    conf.set(_CONSTRAINTS, "false")
    try:
        return rows.localCheckpoint()
    finally:
        conf.set(_CONSTRAINTS, before or "true")
