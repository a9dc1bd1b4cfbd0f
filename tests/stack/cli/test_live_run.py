"""A run that goes on, and what people do beside it: a second run, a bad file, a replay, an edit, Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lodestream.config import load_config
from lodestream.engine.definitions import changed_since_start
from lodestream.observe import read_events
from lodestream.tables.inspect import Inspector

pytestmark = pytest.mark.timeout(600)

GOOD, BAD, BETTER = "north,A\nsouth,B\neast,A\n", "north,A\nnorth,B\n", "north,A\nsouth,C\neast,A\n"
REGIONS = """
pipeline.reference("regions", "regions.csv", schema="region string, country string", keys=["region"])
pipeline.gold("by_country", sql="gold/by_country.sql")
"""
BY_COUNTRY = """SELECT r.country, count(*) AS orders
FROM silver.orders o JOIN silver.regions r ON o.region = r.region GROUP BY r.country
"""


class Run:
    """A live `lode run` of one project."""

    def __init__(self, lode: Any, folder: Path, *arguments: str) -> None:
        self.lode, self.folder = lode, folder
        self.process: subprocess.Popen[str] = lode.start("--project", folder, "run", *arguments)

    def command(self, *arguments: str) -> Any:
        return self.lode("--project", self.folder, *arguments, "--json")

    def states(self) -> dict[str, str]:
        return {one["table"]: one["state"] for one in self.command("flow", "list").json["flows"]}

    def told(self, name: str, table: str) -> int:
        return sum(1 for _ in read_events(self.folder / ".lode", table=table, name=name))

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        view = Inspector(load_config(self.folder)).look(table)
        found = view.table.scan().to_arrow().to_pylist() if view is not None else []
        return sorted(tuple(row.values()) for row in found)

    def until(self, done: Callable[[], bool], seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline, [event.line() for event in read_events(self.folder / ".lode")][-10:]
            time.sleep(0.2)


@pytest.fixture(scope="module")
def run(lode: Any) -> Iterator[Run]:
    assert lode("init", "shop").code == 0
    folder = lode.folder / "shop"
    (folder / "regions.csv").write_text("region,country\n" + GOOD)
    (folder / "gold" / "by_country.sql").write_text(BY_COUNTRY)
    with (folder / "pipeline.py").open("a") as file:
        file.write(REGIONS)
    found = Run(lode, folder)
    found.until(lambda: len(found.rows("gold.by_country")) == 2 and len(found.rows("gold.daily_revenue")) > 0)
    yield found
    if found.process.poll() is None:
        found.process.kill()
        found.process.communicate()


def test_a_second_run_says_who_runs_and_leaves_the_first_alone(run: Run) -> None:
    batches = run.told("batch.published", "silver.orders")
    second = run.command("run", "--once")
    assert second.code == 5
    assert second.json["error"]["name"] == "AlreadyRuns"
    assert second.json["error"]["holder"]["pid"] == run.process.pid
    assert second.json["error"]["holder"]["run"] in second.json["error"]["why"]
    assert run.process.poll() is None
    assert run.told("batch.published", "silver.orders") == batches
    assert run.told("flow.stopped", "silver.orders") == 0


def test_a_bad_reference_file_changes_nothing_and_the_next_good_one_is_taken_by_itself(run: Run) -> None:
    before = run.rows("gold.by_country")
    (run.folder / "regions.csv").write_text("region,country\n" + BAD)
    run.until(lambda: run.told("flow.blocked", "silver.regions") == 1)
    assert run.states()["silver.regions"] == "blocked"
    assert run.rows("gold.by_country") == before
    (run.folder / "regions.csv").write_text("region,country\n" + BETTER)
    run.until(lambda: {row[0] for row in run.rows("gold.by_country")} == {"A", "C"})
    assert run.told("flow.resumed", "silver.regions") == 1


def test_a_replay_beside_a_quiet_run_reaches_gold_by_itself(run: Run) -> None:
    orders = len(run.rows("silver.orders"))
    contract = run.folder / "contracts" / "order.yaml"
    contract.write_text(contract.read_text().replace("amount > 0", "amount <> 0"))
    replayed = run.command("dead", "replay", "silver.orders")
    assert replayed.code == 0, replayed.err
    assert len(run.rows("silver.orders")) == orders + 1
    run.until(lambda: sum(row[1] for row in run.rows("gold.by_country")) == orders + 1, seconds=60)


def test_one_flow_is_paused_resumed_and_restarted(run: Run) -> None:
    assert run.command("flow", "pause", "by_country").code == 0
    run.until(lambda: run.states()["gold.by_country"] == "paused")
    assert run.command("flow", "resume", "by_country").code == 0
    assert run.command("flow", "restart", "silver.orders").code == 0
    run.until(lambda: run.told("flow.restarted", "silver.orders") == 1)
    run.until(lambda: set(run.states().values()) <= {"waiting", "running"})


def test_an_edited_query_is_told(run: Run) -> None:
    (run.folder / "gold" / "by_country.sql").write_text(BY_COUNTRY + "-- edited\n")
    run.until(lambda: run.told("definition.changed", "gold.by_country") == 1)
    assert changed_since_start(read_events(run.folder / ".lode")) == {"gold.by_country": ("gold/by_country.sql",)}


def test_who_takes_over_ends_the_first_and_ctrl_c_is_130(run: Run) -> None:
    heir = Run(run.lode, run.folder, "--take-over")
    _, said = run.process.communicate(timeout=120)
    assert run.process.returncode == 5, said
    assert "was taken over by another driver" in said
    heir.until(lambda: set(heir.states().values()) <= {"waiting", "running"})
    heir.process.send_signal(signal.SIGINT)
    _, said = heir.process.communicate(timeout=60)
    assert heir.process.returncode == 130, said
    ends = [one.facts()["exit_code"] for one in read_events(run.folder / ".lode") if one.name == "run.ended"]
    assert sorted(ends) == [5, 130], "the last event of each says how it ended"
    assert run.command("flow", "list").json["error"]["name"] == "NothingRuns"
