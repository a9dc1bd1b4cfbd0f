from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyiceberg.catalog.sql import SqlCatalog

from lodestream.config import Config
from lodestream.runtime.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _write_and_read_back(spark: SparkSession, config: Config) -> list[dict[str, object]]:
    spark.sql("create namespace silver")
    spark.sql("create table silver.trips (id int, zone string) using iceberg")
    spark.sql("insert into silver.trips values (1, 'Åsane'), (2, null)")
    catalog = SqlCatalog(config.catalog.name, uri=config.catalog_uri(), warehouse=config.warehouse())
    return catalog.load_table("silver.trips").scan().to_arrow().sort_by("id").to_pylist()


def test_pyiceberg_reads_the_catalog_that_spark_wrote(lake):
    rows = _write_and_read_back(lake.spark, lake.config)
    assert rows == [{"id": 1, "zone": "Åsane"}, {"id": 2, "zone": None}]


def test_a_root_with_spaces_and_umlauts_works(spark: SparkSession, tmp_path: Path):
    config = Config(root=tmp_path / "Straßen & Züge (1)")
    rows = _write_and_read_back(start_session(config, app_name="tests"), config)
    assert len(rows) == 2
    assert list(config.root.rglob("*.parquet"))


def test_sessions_of_flows_see_the_same_catalog(lake):
    lake.spark.sql("create namespace gold")
    namespaces = lake.spark.newSession().sql("show namespaces in lode").collect()
    assert [row[0] for row in namespaces] == ["gold"]


def test_two_projects_in_one_process_stay_apart(spark: SparkSession, tmp_path: Path):
    one = start_session(Config(root=tmp_path / "one"), app_name="tests")
    one.sql("create namespace bronze")
    two = start_session(Config(root=tmp_path / "two"), app_name="tests")
    assert two.sql("show namespaces").count() == 0
    assert one.sql("show namespaces").count() == 1


def test_the_session_is_local_quiet_and_in_utc(spark: SparkSession):
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.driver.host") == "127.0.0.1"
    assert conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.master.startswith("local[")


def test_local_commits_take_no_naps(spark: SparkSession):
    pools = spark._jvm.org.apache.iceberg.util.ThreadPools
    task = spark._jvm.java.util.concurrent.Executors.callable(spark._jvm.java.lang.Thread())
    assert pools.getWorkerPool().submit(task).isDone()
