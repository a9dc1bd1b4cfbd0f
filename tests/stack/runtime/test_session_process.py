"""How Spark's own process begins and ends, each seen from a process of the test's own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lodestream.config import RuntimeConfig
from lodestream.runtime.java import find_java

START = """
import os, signal, sys
from pathlib import Path
from lodestream.config import Config, RuntimeConfig, SparkConfig
from lodestream.runtime.session import start_session
config = Config(
    root=Path(sys.argv[1]),
    spark=SparkConfig(conf={"spark.driver.extraJavaOptions": os.environ.get("JAVA_EXTRA", "-Xshare:off")}),
    runtime=RuntimeConfig(java_home=sys.argv[2], cache=sys.argv[3]),
)
spark = start_session(config, app_name="test")
def ready():
    print("ready", spark.sparkContext._gateway.proc.pid, flush=True)
"""
WAIT = """
import time
ready()
time.sleep(600)
"""
# Ready inside: the interrupt may come before the next statement.
FINISH = """
try:
    ready()
    signal.pause()
except KeyboardInterrupt:
    spark.sql("create namespace bronze")
    spark.sql("create table bronze.t (a int) using iceberg")
    spark.sql("insert into bronze.t select id from range(10)")
    print("rows", spark.table("bronze.t").count(), flush=True)
"""


@pytest.fixture(scope="module")
def wheel() -> str:
    return str(find_java(RuntimeConfig(), {"PATH": "/nonexistent"}).home)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The user's jars, seen through a path with a space and an umlaut."""
    from lodestream.runtime.cache import cache_dir
    from lodestream.runtime.jars import ensure_jars
    from lodestream.runtime.progress import SilentProgress

    ensure_jars("spark", RuntimeConfig(), SilentProgress())
    folder = tmp_path_factory.mktemp("cache") / "Mein Käfig"
    folder.mkdir()
    (folder / "jars").symlink_to(cache_dir(RuntimeConfig()) / "jars")
    return folder


def test_the_second_start_takes_its_classes_from_the_archive(tmp_path: Path, wheel: str, cache: Path):
    """On the wheel's Java, which comes without an archive of its own."""
    for number in (1, 2):
        log = tmp_path / f"classes-{number}.txt"
        variables = {"JAVA_EXTRA": f"-Xlog:class+load:file={log}"}
        process = _start("ready(); spark.range(10).count()", tmp_path / str(number), wheel, cache, **variables)
        java = _java_pid(process)
        process.communicate(timeout=60)
        assert _gone_within(java, 90)
        loaded = log.read_text()
        archived = loaded.count("shared objects file (top)") / loaded.count("source:")
        # The rest comes from the archive of Java itself, and from lambdas made on the spot.
        assert archived == 0 if number == 1 else archived > 0.5, f"start {number}: {archived:.0%}"


def _start(script: str, root: Path, java_home: str, cache: Path, **variables: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", START + script, str(root), java_home, str(cache)]
    return subprocess.Popen(
        command,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _java_pid(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    ready = process.stdout.readline().split()
    assert ready, process.communicate()[1]
    return int(ready[1])


def _gone_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


def test_killing_python_ends_java(tmp_path: Path, wheel: str, cache: Path):
    process = _start(WAIT, tmp_path, wheel, cache)
    java = _java_pid(process)
    assert "java" in psutil.Process(java).name()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert _gone_within(java, 15)


def test_ctrl_c_lets_python_finish_its_batch_and_nothing_is_printed_by_spark(tmp_path: Path, wheel: str, cache: Path):
    root = tmp_path / "Straße 1"
    # In the C locale too, where Java by itself cannot open this path.
    process = _start(FINISH, root, wheel, cache, LC_ALL="C")
    java = _java_pid(process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole foreground group
    said, complained = process.communicate(timeout=60)
    assert said == "rows 10\n"
    assert complained == ""
    assert _gone_within(java, 15)
    assert list((root / ".lode" / "warehouse").rglob("*.parquet"))
