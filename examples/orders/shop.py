"""The pipeline that both teams declare tables in, and the spellings that both have to read."""

from pyspark.sql import Column
from pyspark.sql import functions as f

from lodestream import Pipeline

shop = Pipeline("shop")


def number(column: str) -> Column:
    """An id as the number that all its spellings share: 17, "C-17", "cust_000017"."""
    return f.expr(f"try_cast(regexp_extract({column}, '([0-9]+)$', 1) AS bigint)")


def moment(column: str) -> Column:
    """A time in any of its spellings: ISO 8601, milliseconds since 1970, or day/month/year in UTC."""
    return f.expr(
        f"CASE WHEN {column} RLIKE '^[0-9]{{13}}$' THEN timestamp_millis(try_cast({column} AS bigint))"
        f" WHEN {column} LIKE '__/__/____ %' THEN try_to_timestamp({column}, 'dd/MM/yyyy HH:mm:ss')"
        f" ELSE try_cast({column} AS timestamp) END"
    )


def money(column: str) -> Column:
    """12.5, "12.50" and "12.50 EUR"; nothing that has more than two places."""
    return f.expr(f"try_cast(regexp_extract({column}, '^([0-9]+([.][0-9]{{1,2}})?)( EUR)?$', 1) AS decimal(12,2))")
