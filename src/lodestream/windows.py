"""Windows for Gold functions: they are group keys or frames, so late events correct what is published.

    from lodestream import windows

    trips.groupBy("zone", windows.tumbling("at", "10 minutes")).count()
    trips.groupBy("zone", windows.hopping("at", "10 minutes", "5 minutes")).count()
    trips.groupBy("zone", windows.session("at", "5 minutes")).count()
    trips.withColumn("recent", count("*").over(windows.sliding("at", "10 minutes", by="card")))
    trips.withColumn("share", col("fare") / sum("fare").over(windows.overall(by="zone")))

SQL has the same by itself: `window(at, '10 minutes')`, `window(at, '10 minutes', '5 minutes')`,
`session_window(at, '5 minutes')`, and `OVER (PARTITION BY card ORDER BY at RANGE BETWEEN INTERVAL 10 MINUTES PRECEDING
AND CURRENT ROW)`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, Window, WindowSpec
from pyspark.sql import functions as f

from lodestream.config import parse_duration

__all__ = ["hopping", "overall", "session", "sliding", "tumbling"]

Names = str | Sequence[str]


def tumbling(at: str | Column, length: str) -> Column:
    """One window after the other: each event is in exactly one. A struct with `start` and `end` (exclusive)."""
    return f.window(at, _spelled(length)).alias("window")


def hopping(at: str | Column, length: str, every: str) -> Column:
    """A window of this length begins at every step: an event is in several when they overlap."""
    return f.window(at, _spelled(length), _spelled(every)).alias("window")


def session(at: str | Column, gap: str) -> Column:
    """Events of a group with at most `gap` between them. A late one can join two sessions, a lost one part them."""
    return f.session_window(at, _spelled(gap)).alias("session")


def sliding(at: str, length: str, by: Names = ()) -> WindowSpec:
    """For each event, the events of its group in the time up to it: `count("*").over(...) > 5` is more than five in any
    such time, both ends included."""
    micros = f.unix_micros(f.col(at).cast("timestamp"))
    return overall(by).orderBy(micros).rangeBetween(-round(parse_duration(length) * 1_000_000), 0)


def overall(by: Names = ()) -> WindowSpec:
    """All events of a group, whenever they were."""
    names = [by] if isinstance(by, str) else list(by)
    return Window.partitionBy(*names)


def _spelled(length: str) -> str:
    """As Spark reads it: `10 min` and `10 minutes` are the same."""
    return f"{round(parse_duration(length) * 1_000_000)} microseconds"
