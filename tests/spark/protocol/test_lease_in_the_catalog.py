"""The lease where it is kept: in a real catalog, written in one step, readable without a JVM."""

from __future__ import annotations

from typing import Any

import pytest

from lodestream.engine.run_lease import refuse_early
from lodestream.errors import AlreadyRuns
from lodestream.runtime.process import ProcessId
from lodestream.tables.lake import Lake
from lodestream.tables.lease import TABLE, Conflict, Holder, Lease
from lodestream.tables.lease_book import IcebergLeaseBook


def book(lake: Any) -> IcebergLeaseBook:
    return IcebergLeaseBook(Lake(lake.spark.newSession(), lake.config.catalog.name))


def holder(run: str) -> Holder:
    return Holder(run, ProcessId.own(), started=1.0, renewed=1.0)


def test_of_two_writers_one_is_told_that_it_came_late(lake: Any) -> None:
    one, other = book(lake), book(lake)
    assert one.read() == other.read() == {}
    one.write({"silver.a": holder("one")})
    with pytest.raises(Conflict):
        other.write({"silver.a": holder("other")})
    assert {name: found.run for name, found in other.read().items()} == {"silver.a": "one"}
    other.write({"silver.b": holder("other"), "silver.a": None})
    assert set(one.read()) == {"silver.b"}


def test_a_second_run_is_refused_before_spark_is_needed_and_free_after_the_first(lake: Any) -> None:
    refuse_early(lake.config, ["silver.a"])
    first = Lease(book(lake), "first")
    first.take(["silver.a"])
    with pytest.raises(AlreadyRuns, match="run first on"):
        refuse_early(lake.config, ["silver.a"])
    refuse_early(lake.config, ["silver.b"])
    first.release()
    refuse_early(lake.config, ["silver.a"])


def test_a_lease_whose_table_was_dropped_is_written_again(lake: Any) -> None:
    lease = Lease(book(lake), "first")
    lease.take(["silver.a"])
    lake.spark.sql(f"DROP TABLE lode.{TABLE}")
    assert lease.renew().lost == {}
    assert book(lake).read()["silver.a"].run == "first"


def test_renewals_leave_no_snapshots_behind(lake: Any) -> None:
    lease = Lease(book(lake), "first")
    lease.take(["silver.a"])
    for _ in range(5):
        lease.renew()
    assert lake.spark.sql(f"SELECT count(*) FROM lode.{TABLE}.snapshots").first()[0] == 1
