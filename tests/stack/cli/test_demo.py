"""The demo, whole: broker, generator, Spark, three tiers."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from lodestream.observe import BatchPublished, read_events

pytestmark = pytest.mark.timeout(600)
EVENTS = 3_000


@pytest.fixture(scope="module")
def first(lode) -> Any:
    """One run in words, into a folder that is kept."""
    return lode("demo", "--once", "--events", str(EVENTS), "--seed", "7", "--keep", "taxi")


@pytest.fixture(scope="module")
def second(lode, first) -> Any:
    """The next run in the same folder, for programs."""
    return lode("demo", "--once", "--events", str(EVENTS), "--seed", "7", "--keep", "taxi", "--json")


def test_once_ends_well_and_tells_how_to_look_around(first):
    assert first.code == 0, first.err
    assert f"{EVENTS:,} events" in first.out
    for words in ("# lode", "# PyIceberg", "# DuckDB"):
        assert words in first.out


@pytest.mark.parametrize("reader", ["lode", "PyIceberg", "DuckDB"])
def test_the_printed_commands_work_in_the_same_folder(lode, first, reader):
    command = first.out.partition(f"# {reader}\n")[2].splitlines()[0]
    done = subprocess.run(["sh", "-c", command], cwd=lode.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert "total_trips" in done.stdout or "gold.daily_summary" in done.stdout


def test_the_json_has_exactly_the_promised_shape(second):
    assert second.code == 0, second.err
    shown = second.json
    assert set(shown) == {"events", "tables", "dead", "seconds", "peak_mb", "warehouse", "catalog"}
    assert set(shown["seconds"]) == {"setup", "spark", "first_gold", "total"}
    assert all(value > 0 for value in shown["seconds"].values())
    assert set(shown["dead"]) == {"silver.trips"}
    assert all(set(table) == {"rows", "snapshot"} for table in shown["tables"].values())


def test_a_kept_folder_goes_on_and_its_counts_add_up(second):
    shown = second.json
    rows = {name: table["rows"] for name, table in shown["tables"].items()}
    assert shown["events"] == 2 * EVENTS
    assert rows["bronze.trips_raw"] == 2 * EVENTS
    assert rows["silver.trips"] + shown["dead"]["silver.trips"] == 2 * EVENTS
    assert shown["dead"]["silver.trips"] > 0


def test_gold_counts_the_trips_of_silver(second):
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog("lode", type="sql", uri=second.json["catalog"])
    days = catalog.load_table("gold.daily_summary").scan().to_arrow().to_pylist()
    assert sum(day["total_trips"] for day in days) == second.json["tables"]["silver.trip_metrics"]["rows"]


def test_the_whole_demo_stays_under_its_memory(second):
    assert 0 < second.json["peak_mb"] < 1_500


def test_nothing_is_left_running(lode, second, left_over):
    assert _ended(lode.folder, left_over)


def test_a_live_demo_is_alone_in_its_folder_and_ends_cleanly_with_ctrl_c(lode, left_over):
    folder = lode.folder / "live"
    process = lode.start("demo", "--rate", "200", "--keep", folder)
    _wait_for_gold(folder, process)
    second = lode("demo", "--once", "--events", "10", "--keep", folder, "--json", timeout=60)
    assert second.code == 5
    assert second.json["error"]["name"] == "AnotherWriter"

    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "Look around" in out
    assert _ended(folder, left_over)
    rows = {table["name"]: table["rows"] for table in lode("status", "--project", folder, "--json").json["tables"]}
    assert rows["gold.daily_summary"] > 0


def test_a_killed_demo_leaves_no_process_and_goes_on(lode, left_over):
    folder = lode.folder / "killed"
    process = lode.start("demo", "--rate", "200", "--keep", folder)
    _wait_for_gold(folder, process)
    process.kill()
    process.wait()
    assert _ended(folder, left_over, 45)

    shown = lode("demo", "--once", "--events", "100", "--keep", folder, "--json").json
    rows = shown["tables"]
    assert rows["bronze.trips_raw"]["rows"] == shown["events"]
    assert rows["silver.trips"]["rows"] + shown["dead"]["silver.trips"] == shown["events"]


def _ended(folder: Path, left_over: Any, seconds: float = 15) -> bool:
    """Whether no process works in the folder any more."""
    deadline = time.monotonic() + seconds
    while left_over(folder) and time.monotonic() < deadline:
        time.sleep(0.2)
    return left_over(folder) == []


def _wait_for_gold(folder: Path, process: subprocess.Popen[str], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while True:
        published = read_events(folder / ".lode", BatchPublished) if folder.is_dir() else iter(())
        if any((event.table or "").startswith("gold.") for event in published):
            return
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "no Gold in time"
        time.sleep(0.2)
