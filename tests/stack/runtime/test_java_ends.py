"""The Java process of a run is killed, or runs out of heap: the run says so, and ends with a code of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lodestream.config import load_config
from lodestream.observe import BatchPublished, read_events

PIPELINE = """
from lodestream import Files, Json, Pipeline

shop = Pipeline("shop")
shop.bronze("orders_raw", Files("in", settle="0 s"))


@shop.silver(decode=Json("id bigint"))
def orders(orders_raw):
    return orders_raw


shop.gold("counts", sql="select count(*) as n from silver.orders")
"""
SETTINGS = """
pipeline = "pipeline.py"
profile = "local"

[profiles.local.spark]
driver_memory = "512m"
"""


@pytest.mark.timeout(240)
def test_a_killed_java_process_ends_the_run_with_its_own_code_and_a_new_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    (tmp_path / "lode.toml").write_text(SETTINGS)
    send(tmp_path, 1)
    run = start(tmp_path)
    published(tmp_path, 3, run)
    os.kill(java_of(run), signal.SIGKILL)
    assert run.wait(60) == 9, said(tmp_path)
    text = said(tmp_path)
    # A flow that was at a batch says so too; the command says it once.
    assert text.count("\nJavaEnded: the Java process that runs Spark was killed (SIGKILL)") == 1, text
    assert "fix: " in text
    assert "Connection refused" not in text
    assert "Traceback" not in text

    send(tmp_path, 2)
    again = subprocess.run(command("--once"), cwd=tmp_path, capture_output=True, text=True, timeout=150, check=False)
    assert again.returncode == 0, again.stdout + again.stderr
    published(tmp_path, 6, None)


HUNGRY = PIPELINE.replace(
    "    return orders_raw\n", "    return orders_raw.selectExpr('*', 'size(sequence(0L, id)) AS n')\n"
)


@pytest.mark.timeout(240)
def test_an_exhausted_heap_ends_the_run_with_its_own_code_and_says_what_to_raise(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "pipeline.py").write_text(HUNGRY)
    (tmp_path / "lode.toml").write_text(SETTINGS)
    send(tmp_path, 1)
    run = start(tmp_path)
    published(tmp_path, 3, run)
    send(tmp_path, 400_000_000)  # as many numbers in one row: far more than the heap
    assert run.wait(90) == 9, said(tmp_path)
    text = said(tmp_path)
    assert text.count("\nJavaEnded: the Java process that runs Spark ran out of heap and ended") == 1, text
    assert "fix: raise spark.driver_memory or lower engine.max_batch_rows" in text
    assert "Connection refused" not in text
    assert "Traceback" not in text


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "lodestream.cli", "run", *arguments]


def start(root: Path) -> subprocess.Popen[bytes]:
    with (root / "run.log").open("wb") as log:
        return subprocess.Popen(command(), cwd=root, stdout=log, stderr=subprocess.STDOUT)


def send(root: Path, number: int) -> None:
    (root / "in" / f"{number}.json").write_text(f'{{"id": {number}}}\n')


def said(root: Path) -> str:
    return (root / "run.log").read_text(errors="replace")


def published(root: Path, batches: int, run: subprocess.Popen[bytes] | None) -> None:
    deadline = time.monotonic() + 120
    while len(list(read_events(load_config(root).state_dir, BatchPublished))) < batches:
        assert time.monotonic() < deadline, said(root)
        assert run is None or run.poll() is None, said(root)
        time.sleep(0.2)


def java_of(run: subprocess.Popen[bytes]) -> int:
    """The child whose program is Java."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == run.pid and (entry / "comm").read_text().strip() == "java":
                    return int(entry.name)
            except (OSError, ValueError):
                continue
    raise AssertionError("the run has no Java process")
