from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

# What the tests of several rooms share.
sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("counted")

SUMMER_TIME = "America/New_York"


@pytest.fixture(params=["UTC", SUMMER_TIME])
def zone(request: pytest.FixtureRequest, spark: Any) -> Iterator[str]:
    """The machine stands in this zone, and then in another: for Python and for the JVM, as `TZ` would have it."""
    with _standing_in(request.param, spark):
        yield request.param


@pytest.fixture
def summer_time(spark: Any) -> Iterator[None]:
    """The machine stands where clocks are put forward and back: what goes through local time comes back moved."""
    with _standing_in(SUMMER_TIME, spark):
        yield


@pytest.fixture(params=["small", "large"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same rows as a small batch, which is kept whole while it is judged, and as a large one, which is not."""
    if request.param == "large":
        monkeypatch.setattr("lodestream.flows.judging.judged_rows.MOST_WHOLE", 0)
    return str(request.param)


@contextmanager
def _standing_in(zone: str, spark: Any) -> Iterator[None]:
    jvm = spark.sparkContext._jvm
    before, clock = os.environ.get("TZ"), jvm.java.util.TimeZone.getDefault()
    os.environ["TZ"] = zone
    time.tzset()
    jvm.java.util.TimeZone.setDefault(jvm.java.util.TimeZone.getTimeZone(zone))
    try:
        yield
    finally:
        jvm.java.util.TimeZone.setDefault(clock)
        os.environ.pop("TZ")
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()
