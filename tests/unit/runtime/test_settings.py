from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from lodestream.config import CatalogConfig, CatalogType, Config, Secret, SparkConfig
from lodestream.config.model import ADDRESSES
from lodestream.errors import ConfigError, RuntimeMissing
from lodestream.runtime.catalogs import catalog_file, catalog_settings, needs_s3, python_settings
from lodestream.runtime.jvm_options import jvm_choice
from lodestream.runtime.settings import launch_settings, spark_settings
from lodestream.runtime.sizing import LEAST_HEAP, MIB, MOST_HEAP, heap_bytes, parse_size

JARS = [Path("/cache/a.jar"), Path("/cache/b c.jar")]
ROOT = Path("/projects/taxi")


def _settings(**sections: object) -> dict[str, str]:
    return spark_settings(Config(root=ROOT, **sections), "app", JARS)  # type: ignore[arg-type]


def _catalog(**fields: object) -> dict[str, str]:
    settings = catalog_settings(Config(root=ROOT, catalog=CatalogConfig(**fields)))  # type: ignore[arg-type]
    prefix = f"spark.sql.catalog.{fields.get('name', 'lode')}."
    return {key.removeprefix(prefix): value for key, value in settings.items()}


def test_a_local_session_stays_on_this_machine():
    settings = _settings()
    assert settings["spark.master"].startswith("local[")
    assert settings["spark.driver.bindAddress"] == settings["spark.driver.host"] == "127.0.0.1"
    assert settings["spark.driver.extraClassPath"] == "/cache/a.jar:/cache/b c.jar"
    assert "spark.jars" not in settings


def test_another_master_gets_the_jars_and_nothing_local():
    settings = _settings(spark=SparkConfig(master="spark://host:7077"))
    assert settings["spark.jars"] == "file:///cache/a.jar,file:///cache/b%20c.jar"
    assert not {"spark.driver.host", "spark.driver.memory", "spark.sql.shuffle.partitions"} & set(settings)


def test_spark_connect_is_refused_with_the_reason():
    with pytest.raises(ConfigError, match="Spark Connect"):
        _settings(spark=SparkConfig(master="sc://host"))


def test_the_users_settings_win_and_lists_are_continued():
    conf = {
        "spark.ui.enabled": "true",
        "spark.driver.extraJavaOptions": "-Dmine=1",
        "spark.driver.extraClassPath": "/mine.jar",
        "spark.sql.extensions": "my.Extensions",
    }
    settings = _settings(spark=SparkConfig(conf=conf))
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.driver.extraJavaOptions"].endswith(" -Dmine=1")
    assert settings["spark.driver.extraClassPath"].endswith(":/mine.jar")
    assert settings["spark.sql.extensions"].endswith("IcebergSparkSessionExtensions,my.Extensions")


def test_secrets_are_revealed_to_spark_but_not_on_a_command_line():
    settings = _settings(
        spark=SparkConfig(conf={"spark.hadoop.fs.s3a.secret.key": Secret("geheim")}),
        catalog=CatalogConfig(type="rest", uri="http://c", properties={"token": Secret("geheim")}),
    )
    assert settings["spark.sql.catalog.lode.token"] == "geheim"
    assert settings["spark.hadoop.fs.s3a.secret.key"] == "geheim"
    assert "geheim" not in str(launch_settings(settings))


def test_a_cache_with_a_colon_is_refused():
    with pytest.raises(ConfigError, match="colon"):
        spark_settings(Config(root=ROOT), "app", [Path("/a:b/c.jar")])


def test_the_default_catalog_is_sqlite_in_the_project():
    catalog = _catalog()
    assert catalog["uri"] == "jdbc:sqlite:/projects/taxi/.lode/catalog.db"
    assert catalog["warehouse"] == "/projects/taxi/.lode/warehouse"
    assert (catalog["type"], catalog["jdbc.schema-version"], catalog["cache-enabled"]) == ("jdbc", "V1", "false")
    assert int(catalog["jdbc.busy_timeout"]) >= 10_000


def test_a_relative_sqlite_address_is_below_the_root():
    assert _catalog(uri="sqlite:///meta/c.db")["uri"] == "jdbc:sqlite:/projects/taxi/meta/c.db"


@pytest.mark.parametrize(
    "uri", ["postgresql+psycopg2://ann:p%40ss@db:5433/lake", "postgresql://ann:p%40ss@db:5433/lake"]
)
def test_a_sqlalchemy_address_of_postgresql_becomes_jdbc(uri: str):
    catalog = _catalog(type="jdbc", uri=uri)
    assert catalog["uri"] == "jdbc:postgresql://db:5433/lake"
    assert (catalog["jdbc.user"], catalog["jdbc.password"]) == ("ann", "p@ss")


def test_a_jdbc_address_is_passed_on():
    assert (
        _catalog(type="jdbc", uri="jdbc:postgresql://db/lake?ssl=true")["uri"] == "jdbc:postgresql://db/lake?ssl=true"
    )


def test_addresses_of_the_wrong_kind_are_refused():
    with pytest.raises(ConfigError, match="sqlite:///path"):
        _catalog(uri="postgresql://db/lake")
    with pytest.raises(ConfigError, match="mysql"):
        _catalog(type="jdbc", uri="mysql://db/lake")


def test_a_rest_catalog_with_its_own_properties():
    catalog = _catalog(type="rest", name="prod", uri="https://c/api", properties={"oauth2-server-uri": "https://o"})
    assert (catalog["type"], catalog["uri"], catalog["oauth2-server-uri"]) == ("rest", "https://c/api", "https://o")
    assert "jdbc.schema-version" not in catalog


def test_a_bucket_brings_the_s3_jars_and_file_io():
    bucket = CatalogConfig(warehouse="s3://bucket/lake")
    assert needs_s3(Config(root=ROOT, catalog=bucket))
    assert not needs_s3(Config(root=ROOT))
    assert _catalog(warehouse="s3://bucket/lake")["io-impl"] == "org.apache.iceberg.aws.s3.S3FileIO"
    assert _catalog(warehouse="s3://bucket/lake", properties={"io-impl": "mine"})["io-impl"] == "mine"


@pytest.mark.parametrize(("total", "heap"), [(2048, 512), (2560, 640), (4096, 768), (8192, 1024), (65536, 4096)])
def test_the_heap_follows_the_machine_within_bounds(total: int, heap: int):
    assert heap_bytes(None, total=total * MIB, available=total * MIB) == heap * MIB
    assert LEAST_HEAP <= heap * MIB <= MOST_HEAP


@pytest.mark.parametrize(
    ("heap", "cores", "collector"), [(768, 2, "serial"), (4096, 2, "serial"), (1024, 8, "serial"), (4096, 8, "G1")]
)
def test_the_collector_follows_the_machine(heap: int, cores: int, collector: str):
    chosen = jvm_choice(heap * MIB, cores)
    assert chosen.collector == collector
    assert sum(option in chosen.options for option in ("-XX:+UseSerialGC", "-XX:+UseG1GC")) == 1


def test_both_compilers_work_by_default():
    """With the first one alone, what waits is worked off four to six times slower."""
    options = _settings()["spark.driver.extraJavaOptions"]
    assert "Tiered" not in options
    assert "-XX:Tier4InvocationThreshold=" in options, "the second one waits for what is hot"
    assert "Tiered" not in (Path(__file__).parents[3] / "examples" / "nyc_taxi" / "lode.toml").read_text()


def test_too_little_memory_is_said_before_java_dies_of_it():
    with pytest.raises(RuntimeMissing, match="not enough memory") as caught:
        heap_bytes(None, total=16_384 * MIB, available=600 * MIB)
    assert "600 MB of 16384 MB" in str(caught.value)
    with pytest.raises(RuntimeMissing, match="512m is the least"):
        heap_bytes("64g", total=16_384 * MIB, available=16_000 * MIB)
    with pytest.raises(ConfigError, match="too little"):
        heap_bytes("256m", total=16_384 * MIB, available=16_000 * MIB)


def test_sizes_are_read_as_spark_reads_them():
    sizes = {"700m": 700, "2g": 2048, "512": 512, "1048576k": 1024}
    assert {text: parse_size(text) // MIB for text in sizes} == sizes
    with pytest.raises(ConfigError):
        parse_size("much")


@pytest.mark.parametrize("kind", get_args(CatalogType))
def test_every_catalog_type_has_settings_for_spark_and_for_pyiceberg(kind: CatalogType) -> None:
    """A type that can be configured and that no place knows would fail with a KeyError in the middle of a start."""
    config = Config(root=ROOT, catalog=CatalogConfig(type=kind, uri=ADDRESSES.get(kind)))
    assert catalog_settings(config)["spark.sql.catalog.lode.uri"]
    assert python_settings(config)["type"] in ("sql", "rest")
    assert (catalog_file(config) is None) == (kind in ADDRESSES)
