"""The driver: who runs next, who is woken, and when the run is over. Flows are scripted, nothing else is fake."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lodestream.cli.commands.run import _ended
from lodestream.engine.driver import Driver
from lodestream.engine.failures import MOST_TRIES, Backoff
from lodestream.engine.runner import Runner
from lodestream.engine.sizing import Sizer
from lodestream.errors import AnotherWriter, BrokerUnavailable, NotOurTable, SourceGap
from lodestream.flows.flow import Published
from lodestream.observe import Event, EventLog, FlowRetry, FlowStopped, SchemaChange, read_events
from lodestream.runtime.java_process import how_it_ended

Step = Published | None | Exception


def published(name: str, rows: int = 1, *, caught_up: bool = True) -> Published:
    return Published(name, 1, 1, {}, {"in": rows, "out": rows}, 0, caught_up, {"total": 0.01})


class ScriptedFlow:
    """Plays a list of outcomes, then has nothing new."""

    def __init__(self, name: str, script: Sequence[Step], diary: list[str], every: float | None = None) -> None:
        self.name = name
        self.table = SimpleNamespace(every=every)
        self._script = list(script)
        self._diary = diary
        self.accepted = 0
        self.at_work = False
        self.noticed: list[Event] = []

    def take_notices(self) -> list[Event]:
        taken, self.noticed = self.noticed, []
        return taken

    def step(self, rows: int) -> Published | None:
        self._diary.append(self.name)
        outcome = self._script.pop(0) if self._script else None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def accept_gap(self) -> Published:
        self.accepted += 1
        return published(self.name, 0)

    def adopt(self) -> Published:
        return published(self.name, 0)

    def explain(self, error: Exception) -> None:
        return None

    def close(self) -> None:
        self._diary.append(f"{self.name} closed")


class Pipeline:
    """A chain of scripted flows in a driver."""

    def __init__(self, folder: Path) -> None:
        self.diary: list[str] = []
        self.runners: list[Runner] = []
        self.folder = folder
        self.events = EventLog(folder / "events", "run")
        self.stop = threading.Event()

    def add(self, name: str, script: Sequence[Step], *, polled: float | None = None, **options: Any) -> ScriptedFlow:
        flow = ScriptedFlow(name, script, self.diary, options.pop("every", None))
        give_up = options.pop("give_up", 5.0)
        self.runners.append(
            Runner(
                flow,  # type: ignore[arg-type]
                depth=len(self.runners),
                polled=polled,
                sizer=Sizer(1.0, 1000),
                backoff=Backoff(0.02, give_up),
                events=self.events,
                **options,
            )
        )
        return flow

    def run(
        self,
        *,
        once: bool = True,
        workers: int = 1,
        seconds: float = 5.0,
        lost: Callable[[], bool] = lambda: False,
    ) -> dict[str, str]:
        names = [runner.name for runner in self.runners]
        downstream = {name: names[place + 1 : place + 2] for place, name in enumerate(names)}
        driver = Driver(self.runners, downstream, workers=workers, once=once, stop=self.stop, lost=lost)
        timer = threading.Timer(seconds, self.stop.set)
        timer.start()
        driver.run()
        timer.cancel()
        return {runner.name: runner.state for runner in self.runners}

    def told(self, name: str) -> list[str | None]:
        return [event.table for event in read_events(self.folder, name=name)]


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return Pipeline(tmp_path)


def test_once_ends_when_everything_is_caught_up(pipeline: Pipeline) -> None:
    pipeline.add("bronze", [published("bronze")], polled=0.01)
    pipeline.add("silver", [published("silver")])
    assert pipeline.run() == {"bronze": "done", "silver": "done"}
    assert sorted(map(str, pipeline.told("batch.published"))) == ["bronze", "silver"]


def test_what_was_read_reaches_gold_before_more_is_read(pipeline: Pipeline) -> None:
    pipeline.add("bronze", [published("bronze", caught_up=False)] * 3 + [published("bronze")], polled=0.01)
    pipeline.add("silver", [published("silver")] * 4)
    pipeline.add("gold", [published("gold")] * 4)
    pipeline.run()
    # The first look of all three may come in any order; after that each batch goes all the way down.
    tail = "".join(name[0] for name in pipeline.diary).lstrip("gs")
    assert tail.startswith("bsgbsgbsgbsg")


def test_a_reader_is_woken_by_its_input_and_not_by_polling(pipeline: Pipeline) -> None:
    pipeline.add("bronze", [None] * 5 + [published("bronze")], polled=0.02)
    pipeline.add("silver", [None, published("silver")])
    threading.Timer(0.6, pipeline.stop.set).start()
    pipeline.run(once=False)
    assert pipeline.diary.count("silver") == 2
    assert pipeline.diary.count("bronze") > 6


def test_a_transient_error_is_retried_and_forgotten(pipeline: Pipeline) -> None:
    pipeline.add("bronze", [BrokerUnavailable("away"), BrokerUnavailable("away"), published("bronze")], polled=0.01)
    assert pipeline.run() == {"bronze": "done"}
    assert pipeline.told("flow.retry") == ["bronze", "bronze"]


def test_a_transient_error_that_lasts_stops_the_flow(pipeline: Pipeline) -> None:
    pipeline.add("bronze", [BrokerUnavailable("away")] * 1000, polled=0.01, give_up=0.1)
    assert pipeline.run() == {"bronze": "stopped"}
    assert isinstance(pipeline.runners[0].error, BrokerUnavailable)


def test_one_failing_flow_does_not_stop_its_siblings(pipeline: Pipeline) -> None:
    pipeline.add("bronze", [published("bronze", caught_up=False), published("bronze")], polled=0.01)
    pipeline.add("silver", [NotOurTable("rows and no positions")])
    other = Runner(
        ScriptedFlow("other", [published("other")] * 2, pipeline.diary),  # type: ignore[arg-type]
        depth=1, polled=0.01, sizer=Sizer(1.0, 10), backoff=Backoff(0.1, 1), events=pipeline.events,
    )  # fmt: skip
    pipeline.runners.append(other)
    states = pipeline.run()
    assert states == {"bronze": "done", "silver": "stopped", "other": "done"}


def test_an_unexpected_error_stops_the_flow_with_its_traceback_in_the_log(pipeline: Pipeline) -> None:
    pipeline.add("bronze", [ZeroDivisionError("division by zero")] * 100, polled=0.01)
    assert pipeline.run() == {"bronze": "stopped"}
    (event,) = read_events(pipeline.folder, FlowStopped)
    assert "ZeroDivisionError: division by zero" in str(event.why)
    assert "Traceback" in str(event.traceback)
    assert len(pipeline.diary) == MOST_TRIES + 1 == 6
    assert "after 6 tries" in str(pipeline.runners[0].error)
    assert "tried six times in all" in (Path(__file__).parents[3] / "docs" / "faults.md").read_text()
    assert pipeline.told("flow.retry") == ["bronze"] * MOST_TRIES
    retries = [event.facts() for event in read_events(pipeline.folder, FlowRetry)]
    assert [one["tries"] for one in retries] == list(range(1, MOST_TRIES + 1))
    assert {(one["most_tries"], one["why"]) for one in retries} == {
        (MOST_TRIES + 1, "ZeroDivisionError: division by zero")
    }


def test_rows_that_were_deleted_are_counted_apart(pipeline: Pipeline) -> None:
    keyed = Published("bronze", 1, 1, {}, {"in": 5, "out": 3, "upserted": 3, "deleted": 2}, 0, True, {"total": 0.01})
    pipeline.add("bronze", [keyed, None], polled=0.01)
    pipeline.run()
    end = pipeline.runners[0].end()
    assert (end.batches, end.rows, end.deleted) == (1, 3, 2)
    assert _ended(end) == "caught up, 1 batch, 3 rows, 2 deleted"


def test_an_unexpected_error_that_passes_costs_nothing(pipeline: Pipeline) -> None:
    strange = [RuntimeError("what is this")] * MOST_TRIES
    pipeline.add("bronze", [*strange, published("bronze", caught_up=False), *strange, published("bronze")], polled=0.01)
    assert pipeline.run() == {"bronze": "done"}
    assert pipeline.told("batch.published") == ["bronze", "bronze"]


def test_a_java_process_that_is_gone_ends_the_whole_run_at_once(pipeline: Pipeline) -> None:
    """Idle flows notice nothing by themselves, and one that fails must not be tried again."""
    pipeline.add("bronze", [None] * 10_000, polled=10)
    began = time.monotonic()
    pipeline.run(once=False, seconds=20, lost=lambda: time.monotonic() > began + 0.5)
    assert time.monotonic() - began < 5
    pipeline.stop.clear()
    pipeline.add("silver", [how_it_ended(-9)], polled=0.01)
    states = pipeline.run(once=False, seconds=20)
    assert time.monotonic() - began < 10
    assert states["silver"] == "stopped"


def test_another_writer_ends_the_whole_run(pipeline: Pipeline) -> None:
    pipeline.add("bronze", [AnotherWriter("run x advanced it")], polled=0.01)
    pipeline.add("silver", [None] * 1000, polled=0.01)
    began = time.monotonic()
    states = pipeline.run(once=False, seconds=10)
    assert time.monotonic() - began < 5
    assert states["bronze"] == "stopped"


def test_a_run_ends_when_only_flows_are_left_that_nothing_can_wake(pipeline: Pipeline) -> None:
    pipeline.add("bronze", [SourceGap("records are gone")], polled=0.01)
    pipeline.add("silver", [])
    began = time.monotonic()
    pipeline.run(once=False, seconds=10)
    assert time.monotonic() - began < 5


def test_a_gap_stops_the_flow_unless_a_person_accepted_it(pipeline: Pipeline) -> None:
    strict = pipeline.add("strict", [SourceGap("records are gone")], polled=0.01)
    lenient = pipeline.add(
        "lenient", [SourceGap("records are gone"), published("lenient")], accept_gap=True, polled=0.01
    )
    states = pipeline.run()
    assert states == {"strict": "stopped", "lenient": "done"}
    assert (strict.accepted, lenient.accepted) == (0, 1)
    assert pipeline.told("gap.accepted") == ["lenient"]


def test_what_is_left_behind_an_accepted_gap_is_read_by_the_same_run(pipeline: Pipeline) -> None:
    flow = pipeline.add("bronze", [SourceGap("records are gone"), published("bronze")], accept_gap=True, polled=60.0)
    assert pipeline.run(seconds=10) == {"bronze": "done"}
    assert (flow.accepted, pipeline.diary.count("bronze")) == (1, 2), "the gap, then what was left"


def test_an_accepted_gap_that_was_not_there_is_no_answer_to_a_later_one(pipeline: Pipeline) -> None:
    script = [None, published("bronze", caught_up=False), SourceGap("records are gone")]
    flow = pipeline.add("bronze", script, accept_gap=True, adopt=True, polled=0.01)
    pipeline.run(once=False, seconds=5)
    assert pipeline.runners[0].state == "stopped"
    assert flow.accepted == 0


def test_a_table_keeps_its_own_cadence(pipeline: Pipeline) -> None:
    pipeline.add("slow", [published("slow")] * 100, polled=0.001, every=0.2)
    pipeline.run(once=False, seconds=0.9)
    assert 3 <= pipeline.diary.count("slow") <= 6


def test_stopping_waits_for_the_batch_that_runs(pipeline: Pipeline) -> None:
    ended: list[float] = []

    def slow(rows: int) -> Published:
        threading.Timer(0.05, pipeline.stop.set).start()
        time.sleep(0.4)
        ended.append(time.monotonic())
        return published("bronze")

    flow = pipeline.add("bronze", [], polled=0.01)
    flow.step = slow  # type: ignore[method-assign]
    pipeline.run(once=False)
    assert len(ended) == 1
    assert pipeline.told("batch.published") == ["bronze"]


def test_independent_flows_run_side_by_side(pipeline: Pipeline) -> None:
    together = threading.Barrier(2, timeout=3)

    def meet(name: str) -> Callable[[int], Published]:
        def step(rows: int) -> Published:
            together.wait()
            return published(name)

        return step

    for name in ("a", "b"):
        flow = pipeline.add(name, [], polled=0.01)
        flow.step = meet(name)  # type: ignore[method-assign]
    names = [runner.name for runner in pipeline.runners]
    Driver(pipeline.runners, dict.fromkeys(names, ()), workers=2, once=True, stop=pipeline.stop).run()
    assert [(runner.state, runner.error) for runner in pipeline.runners] == [("done", None), ("done", None)]


def test_what_a_flow_notices_is_told_also_when_its_batch_fails(pipeline: Pipeline) -> None:
    flow = pipeline.add("silver", [RuntimeError("broken")], polled=0.01)
    flow.noticed.append(SchemaChange(contract="orders 1.1.0", steps=("add tip bigint",), changes=()))
    pipeline.run()
    (told,) = read_events(pipeline.folder, SchemaChange)
    assert (told.table, told.steps) == ("silver", ("add tip bigint",))


def test_the_driver_is_idle_when_no_batch_is_made(pipeline: Pipeline) -> None:
    flow = pipeline.add("gold", [])
    driver = Driver(pipeline.runners, {}, workers=1, once=False, stop=pipeline.stop)
    time.sleep(0.05)
    assert driver.idle_for() >= 0.05
    flow.at_work = True
    assert driver.idle_for() == 0
    flow.at_work = False
    assert driver.idle_for() < 0.05, "counted from the end of the batch"


def test_a_flow_is_woken_by_name_without_news_from_its_inputs(pipeline: Pipeline) -> None:
    pipeline.add("bronze", [], polled=60.0)
    pipeline.add("gold", [None, published("gold")])
    driver = Driver(pipeline.runners, {"bronze": ["gold"]}, workers=1, once=False, stop=pipeline.stop)
    timers = [threading.Timer(0.2, driver.wake, [["gold"]]), threading.Timer(0.5, pipeline.stop.set)]
    for timer in timers:
        timer.start()
    driver.run()
    assert pipeline.told("batch.published") == ["gold"]


def test_a_source_that_raises_while_it_explains_an_error_does_not_end_the_thread(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = pipeline.add("bronze.a", [BrokerUnavailable("away"), published("bronze.a")])

    def explain(error: Exception) -> None:
        raise RuntimeError("a source of the user's own") from error

    monkeypatch.setattr(flow, "explain", explain)
    assert pipeline.run() == {"bronze.a": "done"}
