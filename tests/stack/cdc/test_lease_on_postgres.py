"""The lease in a catalog on PostgreSQL: the same promise as in the embedded one."""

from __future__ import annotations

from pathlib import Path

import pytest
from postgres import USER, Postgres
from pyspark.sql import SparkSession

from lodestream.config import CatalogConfig, Config
from lodestream.errors import AlreadyRuns
from lodestream.runtime.process import ProcessId
from lodestream.runtime.session import start_session
from lodestream.tables.lake import Lake
from lodestream.tables.lease import Conflict, Holder, Lease
from lodestream.tables.lease_book import IcebergLeaseBook


@pytest.mark.timeout(300)
def test_a_lease_on_postgres_has_one_holder(database: Postgres, spark: SparkSession, tmp_path: Path) -> None:
    address = f"postgresql://{USER}@127.0.0.1:{database.port}/postgres"
    config = Config(root=tmp_path, catalog=CatalogConfig(type="jdbc", name="leased", uri=address))
    session = start_session(config, app_name="tests")
    one, other = (IcebergLeaseBook(Lake(session.newSession(), "leased")) for _ in range(2))
    one.read(), other.read()
    one.write({"silver.a": Holder("one", ProcessId.own(), started=1.0, renewed=1.0)})
    with pytest.raises(Conflict):
        other.write({"silver.a": Holder("other", ProcessId.own(), started=1.0, renewed=1.0)})
    assert other.read()["silver.a"].run == "one"
    first = Lease(one, "first")
    first.take(["silver.a"], over=True)
    with pytest.raises(AlreadyRuns, match="run first on"):
        Lease(other, "second").take(["silver.a"])
    assert first.renew().lost == {}
    first.release()
    assert other.read() == {}
