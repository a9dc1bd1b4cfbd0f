"""`lode init` gives a project that runs and passes its own tests at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from lodestream.config import load_config
from lodestream.observe import BatchPublished, RunStarted, read_events
from lodestream.tables.inspect import Inspector

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def project(lode):
    assert lode("init", "Läden und Söhne").code == 0
    return lode.folder / "Läden und Söhne"


def test_it_runs_at_once(lode, project):
    ended = lode("--project", project, "run", "--once", "--json")
    assert ended.code == 0, ended.err
    assert {name: flow["state"] for name, flow in ended.json["flows"].items()} == {
        "bronze.orders_raw": "done",
        "silver.orders": "done",
        "gold.daily_revenue": "done",
    }
    tables = {table["name"]: table for table in lode("--project", project, "status", "--json").json["tables"]}
    assert tables["bronze.orders_raw"]["rows"] == 7
    assert tables["silver.orders"]["rows"] == 5
    assert tables["silver.orders"]["dead"] == 1


def test_it_passes_its_own_tests(project):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=project,
        env={**os.environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


def test_letters_are_replayed_beside_a_live_run(lode, project):
    """The run publishes all the while, under the contract that a person has just corrected."""
    process = lode.start("--project", project, "run")
    try:
        sent = [_order(project, 1)]
        _until(lambda: _published(project, process) > 0)
        contract = project / "contracts" / "order.yaml"
        contract.write_text(contract.read_text().replace("amount > 0", "amount <> 0"))
        replay = lode.start("--project", project, "dead", "replay", "silver.orders", "--json")
        before = _published(project, process)
        while replay.poll() is None:
            sent.append(_order(project, 1 + len(sent)))
            time.sleep(1)
        out, err = replay.communicate()
        assert replay.returncode == 0, out + err
        assert json.loads(out)["replayed"] == 1
        assert _published(project, process) > before, "the run went on"
        _until(lambda: _rows(project) >= 5 + 1 + len(sent))
    finally:
        process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert _rows(project) == 5 + 1 + len(sent), "each order once, the replayed one too"
    found = lode("--project", project, "dead", "list", "silver.orders", "--state", "all", "--json").json["tables"]
    assert [letter["state"] for one in found for letter in one["found"]] == ["replayed"]


def _order(project, number):
    """One more file with an order; it is moved in, whole."""
    order = {"order_id": f"live-{number}", "ordered_at": "2024-02-01T00:00:00", "region": "east", "amount": 1}
    aside = project / "coming.tmp"
    aside.write_text(json.dumps(order) + "\n")
    aside.rename(project / "data" / f"live-{number}.json")
    return number


def _published(project, process):
    """How many batches of Silver the live run has published."""
    assert process.poll() is None, process.communicate()
    started = [event for event in read_events(project / ".lode", RunStarted) if not event.once]
    events = read_events(project / ".lode", BatchPublished)
    return sum(event.table == "silver.orders" and event.run == started[-1].run for event in events) if started else 0


def _rows(project):
    view = Inspector(load_config(project)).look("silver.orders")
    return 0 if view is None else view.table.scan().to_arrow().num_rows


def _until(done, seconds=240):
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.2)
