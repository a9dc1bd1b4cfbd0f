"""Start the Spark session: local and embedded by default, any other master by configuration."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyspark
from py4j.java_gateway import JavaGateway
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from lodestream.config import Config, reveal
from lodestream.errors import RuntimeMissing
from lodestream.runtime.cache import cache_dir
from lodestream.runtime.catalogs import catalog_file, catalog_settings, has_local_files, needs_s3, refuse_lost_catalog
from lodestream.runtime.class_archive import ClassArchive
from lodestream.runtime.inline_commits import commit_inline
from lodestream.runtime.jars import ensure_jars
from lodestream.runtime.java import Java, find_java, java_environment, wrapped_home
from lodestream.runtime.progress import Progress, SilentProgress
from lodestream.runtime.settings import is_local, launch_settings, spark_settings

_log = logging.getLogger(__name__)
_SPARK_HOME = Path(pyspark.__file__).parent
_MOST_LOG_BYTES = 8 * 1024 * 1024


def start_session(config: Config, *, app_name: str, progress: Progress | None = None) -> SparkSession:
    """A session with the configured catalog. A process has one Spark: a second call gives a session on it."""
    progress = progress or SilentProgress()
    _prepare_folders(config)
    running = SparkContext._active_spark_context
    if running is not None:
        return _join(running, config)
    jars = ensure_jars("spark", config.runtime, progress)
    if needs_s3(config):
        jars += ensure_jars("s3", config.runtime, progress)
    java = find_java(config.runtime)
    started = time.monotonic()
    with progress.step("Starting Spark"):
        settings = spark_settings(config, app_name, jars, _archive_options(config, java, jars))
        with _environment(_variables(config, java, settings)), _ctrl_c_kept():
            gateway = SparkContext._gateway or _launch(config, settings)
            context = SparkContext(conf=_conf(settings), gateway=gateway)
        _end_without_traceback(context)
        if is_local(config):
            _without_checksum_files(context)
            if has_local_files(config):
                commit_inline(context._jvm)
    _log.info("spark.started master=%s ms=%d", context.master, (time.monotonic() - started) * 1000)
    return SparkSession(context)


def spark_log(config: Config) -> Path:
    """What the JVM says, on either stream."""
    return config.state_dir / "spark.log"


def _join(context: SparkContext, config: Config) -> SparkSession:
    # Told to the context, not to the session: the sessions that a flow opens from this one start from there.
    conf = context._jsc.sc().conf()
    for key, value in {**catalog_settings(config), "spark.sql.defaultCatalog": config.catalog.name}.items():
        conf.set(key, value)
    session = SparkSession(context).newSession()
    # Spark builds a catalog when it is first asked for, with the settings of whichever session is active then.
    session.sql(f"USE `{config.catalog.name}`")
    return session


def _end_without_traceback(context: SparkContext) -> None:
    """PySpark's server for accumulators prints the loss of its only client; whoever runs a batch says it in words."""
    server: Any = context._accumulatorServer
    server.handle_error = lambda _request, client: _log.debug("accumulators.lost client=%s", client)


def _without_checksum_files(context: SparkContext) -> None:
    """Hadoop keeps one object per file system: this holds for every file that Spark and Iceberg write from now on."""
    jvm: Any = context._jvm
    local = jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI("file:///"), context._jsc.hadoopConfiguration())
    local.setWriteChecksum(False)


def _prepare_folders(config: Config) -> None:
    try:
        config.state_dir.mkdir(parents=True, exist_ok=True)
        if file := catalog_file(config):
            refuse_lost_catalog(config)
            file.parent.mkdir(parents=True, exist_ok=True)
        spark_log(config).touch()
    except OSError as error:
        raise RuntimeMissing(
            f"cannot write to the project's state folder {config.state_dir}",
            why=f"{error.strerror} ({error.filename})",
            fix="run in a folder that can be written to, with space on its disk",
        ) from error


def _archive_options(config: Config, java: Java, jars: list[Path]) -> list[str]:
    if SparkContext._gateway or not is_local(config) or _shares_classes_already(config):
        return []
    folder = cache_dir(config.runtime) / "classes"
    return ClassArchive(folder, "spark", java, [*jars, _SPARK_HOME / "jars"]).options()


def _shares_classes_already(config: Config) -> bool:
    """The user has set this up, or turned it off with -Xshare:off."""
    options = reveal(config.spark.conf.get("spark.driver.extraJavaOptions", ""))
    return "-Xshare" in options or "SharedArchiveFile" in options or "ArchiveClassesAtExit" in options


def _variables(config: Config, java: Java, settings: Mapping[str, str]) -> dict[str, str]:
    variables = {
        **java_environment(os.environ),
        "JAVA_HOME": str(wrapped_home(java, config.runtime)),
        "PYSPARK_PYTHON": sys.executable,
        # Each thread of the JVM would otherwise get its own arena of native memory.
        "MALLOC_ARENA_MAX": os.environ.get("MALLOC_ARENA_MAX", "2"),
    }
    if is_local(config):
        # Another Spark that is installed here, or its settings, must not shape the embedded one.
        variables |= {"SPARK_HOME": str(_SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
        variables |= {
            "SPARK_CONF_DIR": str(cache_dir(config.runtime) / "no-conf"),
            "PYSPARK_SUBMIT_ARGS": "pyspark-shell",
        }
        # The same in every project, so that one class archive serves all.
        variables |= {"LODE_CLASS_PATH": f"{settings['spark.driver.extraClassPath']}:{_SPARK_HOME / 'jars' / '*'}"}
    return variables


def _launch(config: Config, settings: dict[str, str]) -> JavaGateway:
    """PySpark shields the JVM from Ctrl-C and ends it when our end of its standard input closes."""
    with _open_log(spark_log(config)) as log:
        before = log.tell()
        options = {"stdout": log, "stderr": log, "start_new_session": True}
        try:
            return launch_gateway(_conf(launch_settings(settings)), popen_kwargs=options)  # type: ignore[no-untyped-call]
        except PySparkException as error:
            raise RuntimeMissing(
                "Spark's Java process ended while starting",
                why=_said_since(spark_log(config), before),
                fix=f"see {spark_log(config)}; `lode doctor` checks Java, memory and disk",
            ) from error


def _open_log(file: Path) -> IO[bytes]:
    overgrown = file.exists() and file.stat().st_size > _MOST_LOG_BYTES
    stream = file.open("wb" if overgrown else "ab")
    stream.seek(0, os.SEEK_END)
    return stream


def _said_since(file: Path, offset: int) -> str:
    lines = file.read_bytes()[offset:].decode(errors="replace").strip().splitlines()
    return " | ".join(lines[-3:]) or "it said nothing"


def _conf(settings: Mapping[str, str]) -> SparkConf:
    conf = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        conf.set(key, value)
    return conf


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """PySpark reads these from the environment; what was there comes back afterwards."""
    # Key by key: another thread may be starting a process meanwhile, and must not find the environment empty.
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _ctrl_c_kept() -> Iterator[None]:
    """PySpark takes Ctrl-C for itself when it starts in the main thread; how a run stops is the caller's to say."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
