"""The Spark settings of a session: ours, then the user's on top."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lodestream.config import Config, reveal
from lodestream.errors import ConfigError
from lodestream.runtime.catalogs import catalog_settings
from lodestream.runtime.jvm_options import jvm_choice
from lodestream.runtime.sizing import MIB, cores, heap_bytes

_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_CLASS_PATH = "spark.driver.extraClassPath"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_MEMORY = "spark.driver.memory"
# These shape the JVM, so they must be known before it starts. All others, secrets among them, are told to the
# running JVM and so never show in a process list.
_AT_LAUNCH = (_CLASS_PATH, _JAVA_OPTIONS, _MEMORY)
# Hadoop's own class starts a `chmod` process for each file it makes and for each checksum file beside it: ten for one
# commit. This one asks the operating system itself, and Parquet has checksums of its own.
_LOCAL_FILES = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"


def is_local(config: Config) -> bool:
    """Whether Spark runs inside this process's own JVM."""
    master = config.spark.master
    return master is None or master == "local" or master.startswith("local[")


def spark_settings(config: Config, app_name: str, jars: list[Path], java_options: Sequence[str] = ()) -> dict[str, str]:
    """Every setting of the session. `java_options` are for a local driver."""
    if (config.spark.master or "").startswith("sc:"):
        raise ConfigError(
            f"spark.master = {config.spark.master!r} cannot be used",
            why="a table is published through Iceberg's Java interface, which Spark Connect does not offer",
            fix="name a classic master: local[N], spark://..., yarn or k8s://...",
        )
    ours = {
        **_shared(config, app_name),
        **(_local(config, jars, java_options) if is_local(config) else _remote(config, jars)),
    }
    theirs = {key: reveal(value) for key, value in config.spark.conf.items()}
    return {**ours, **_added(ours, theirs)}


def launch_settings(settings: dict[str, str]) -> dict[str, str]:
    """The part that the JVM is started with."""
    return {key: settings[key] for key in _AT_LAUNCH if key in settings}


def _shared(config: Config, app_name: str) -> dict[str, str]:
    return {
        "spark.app.name": app_name,
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        # Python functions get and give times without a zone, in that of their process: not the machine's.
        "spark.executorEnv.TZ": "UTC",
        # A value or a query that holds `${env:HOME}` means these characters, not what this machine has there.
        "spark.sql.variable.substitute": "false",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.defaultCatalog": config.catalog.name,
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Without Kafka: its older batch reader turns every record into a Java object and back.
        "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
        # A long run keeps the history of its last few jobs only.
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        "spark.ui.retainedTasks": "200",
        "spark.sql.ui.retainedExecutions": "5",
        **catalog_settings(config),
    }


def _local(config: Config, jars: list[Path], java_options: Sequence[str]) -> dict[str, str]:
    threads = str(max(2, cores()))
    heap = heap_bytes(config.spark.driver_memory)
    return {
        "spark.master": config.spark.master or f"local[{threads}]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Batches are small and there is one machine: more partitions only add tasks.
        "spark.sql.shuffle.partitions": threads,
        "spark.default.parallelism": threads,
        "spark.hadoop.fs.file.impl": _LOCAL_FILES,
        # What is broadcast stays in this process.
        "spark.broadcast.compress": "false",
        "spark.broadcast.checksum": "false",
        "spark.sql.warehouse.dir": (config.state_dir / "tmp" / "spark-warehouse").absolute().as_uri(),
        # Only where this very Python runs the workers too: the module must be there. It saves 100 ms and more a task.
        "spark.python.daemon.module": "lodestream.sources.codecs.worker_daemon",
        _MEMORY: f"{heap // MIB}m",
        # On the class path, not in spark.jars: that would copy each jar on every start.
        _CLASS_PATH: _class_path(jars),
        _JAVA_OPTIONS: " ".join([*jvm_choice(heap, cores()).options, _quiet(), *map(_quoted, java_options)]),
    }


def _remote(config: Config, jars: list[Path]) -> dict[str, str]:
    settings = {
        "spark.master": config.spark.master or "",
        "spark.jars": ",".join(path.as_uri() for path in jars),
        _JAVA_OPTIONS: _quiet(),
    }
    if config.spark.driver_memory:
        settings[_MEMORY] = config.spark.driver_memory
    return settings


def _quoted(option: str) -> str:
    """As Spark's launcher splits options: a path in one may have spaces."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _quiet() -> str:
    return f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"


def _class_path(jars: list[Path]) -> str:
    if any(":" in str(path) for path in jars):
        raise ConfigError(
            f"the cache {jars[0].parent} has a colon in its path",
            why="Java's class path cannot hold one",
            fix="set LODE_RUNTIME_CACHE to a folder without",
        )
    return ":".join(map(str, jars))


def _added(ours: dict[str, str], theirs: dict[str, str]) -> dict[str, str]:
    """The user's value replaces ours, but lists of jars and options are continued."""
    joints = {_CLASS_PATH: ":", _JAVA_OPTIONS: " ", "spark.jars": ",", "spark.sql.extensions": ","}
    return {
        key: f"{ours[key]}{joints[key]}{value}" if key in joints and key in ours else value
        for key, value in theirs.items()
    }
