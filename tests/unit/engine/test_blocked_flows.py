"""A flow that stopped on something outside goes on when that is right again; what must stop it stops it for good."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from test_driver import Pipeline, ScriptedFlow, published

from lodestream.engine import remedy
from lodestream.engine.driver import Driver
from lodestream.engine.failures import MOST_TRIES
from lodestream.engine.remedy import Remedy
from lodestream.engine.runner import Runner
from lodestream.errors import (
    AlreadyRuns,
    AnotherWriter,
    AuditFailed,
    BrokerUnavailable,
    ConfigError,
    ContractViolation,
    LodeError,
    NotOurTable,
    RegistryUnavailable,
    SourceGap,
    SourceRecreated,
    SourceRewritten,
    SourceUnreadable,
    TableGone,
)
from lodestream.observe import BatchRefused, FlowBlocked, read_events

BAD = ContractViolation("silver.zones refused 1 of 3 rows of zones.csv", why="zone is taken")


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setattr("lodestream.engine.driver.LOOK_SECONDS", 0.02)
    monkeypatch.setattr(remedy, "_FIRST", 0.05)
    return Pipeline(tmp_path)


def background(pipeline: Pipeline, *, workers: int = 1) -> tuple[Driver, threading.Thread]:
    names = [runner.name for runner in pipeline.runners]
    downstream = {name: names[place + 1 : place + 2] for place, name in enumerate(names)}
    driver = Driver(pipeline.runners, downstream, workers=workers, once=False, stop=pipeline.stop)
    thread = threading.Thread(target=driver.run, daemon=True)
    thread.start()
    return driver, thread


def until(true: object, seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)


def end(pipeline: Pipeline, thread: threading.Thread) -> None:
    pipeline.stop.set()
    thread.join(10)
    assert not thread.is_alive()


def test_a_bad_file_blocks_its_flow_until_the_next_version_and_is_told_once(pipeline: Pipeline, tmp_path: Path) -> None:
    file = tmp_path / "zones.csv"
    file.write_text("bad")
    pipeline.add("zones", [BAD, BAD, published("zones")], polled=0.01, remedy=Remedy([file]))
    _, thread = background(pipeline)
    until(lambda: pipeline.runners[0].state == "blocked")
    time.sleep(0.3)
    assert pipeline.diary == ["zones"], "the same bytes are not read again"
    file.write_text("bad again, and longer")
    until(lambda: pipeline.diary == ["zones"] * 2)
    until(lambda: pipeline.runners[0].state == "blocked")
    file.write_text("good")
    until(lambda: pipeline.told("batch.published") == ["zones"])
    end(pipeline, thread)
    assert pipeline.told("flow.blocked") == ["zones"], "the same reason is told once"
    assert pipeline.told("flow.resumed") == ["zones"]
    assert pipeline.runners[0].error is None


def test_gold_that_breaks_its_contract_goes_on_when_its_input_is_right_again(pipeline: Pipeline) -> None:
    pipeline.add("gold", [BAD, BAD, published("gold")], remedy=Remedy(by_inputs=True))  # its contract is no file
    driver, thread = background(pipeline)
    gold = pipeline.runners[0]
    for tries in (1, 2):
        until(lambda: gold.state == "blocked")
        time.sleep(0.3)
        assert pipeline.diary == ["gold"] * tries, "the same rows are not judged again"
        driver.wake(["gold"])
        until(lambda tries=tries: len(pipeline.diary) == tries + 1)
    until(lambda: gold.state == "waiting")
    end(pipeline, thread)
    assert pipeline.told("flow.blocked") == ["gold"]
    assert pipeline.told("flow.resumed") == pipeline.told("batch.published") == ["gold"]
    assert pipeline.told("flow.stopped") == []


def test_an_input_that_publishes_all_the_time_makes_no_stream_of_failing_batches(pipeline: Pipeline) -> None:
    pipeline.add("gold", [BAD] * 100, remedy=Remedy(by_inputs=True))
    driver, thread = background(pipeline)
    for _ in range(100):
        driver.wake(["gold"])
        time.sleep(0.005)
    tries = len(pipeline.diary)
    end(pipeline, thread)
    assert 2 <= tries <= 6


def test_a_blocked_flow_wakes_its_readers_when_it_goes_on(pipeline: Pipeline, tmp_path: Path) -> None:
    file = tmp_path / "zones.csv"
    pipeline.add("zones", [BAD, None], remedy=Remedy([file]))
    pipeline.add("gold", [])
    _, thread = background(pipeline)
    until(lambda: pipeline.runners[0].state == "blocked" and "gold" in pipeline.diary)
    before = pipeline.diary.count("gold")
    file.write_text("there")
    until(lambda: pipeline.diary.count("gold") > before)
    end(pipeline, thread)


@pytest.mark.parametrize(
    "error",
    [ConfigError("Kafka refused us"), SourceUnreadable("a file is truncated"), RegistryUnavailable("401"),
     BrokerUnavailable("away"), LodeError("crashed", why="java.nio.file.AccessDeniedException: /x")],
)  # fmt: skip
def test_what_only_another_try_can_show_is_tried_again_with_growing_pauses(
    pipeline: Pipeline, error: LodeError
) -> None:
    pipeline.add("bronze", [error, error, error, published("bronze")], polled=0.01, give_up=-1, remedy=Remedy())
    _, thread = background(pipeline)
    until(lambda: pipeline.told("batch.published") == ["bronze"])
    end(pipeline, thread)
    assert pipeline.told("flow.blocked") == ["bronze"]
    assert pipeline.told("flow.stopped") == []


@pytest.mark.parametrize(
    "error",
    [SourceGap("gone"), SourceRecreated("another topic"), SourceRewritten("rolled back"), AnotherWriter("x"),
     NotOurTable("rows"), TableGone("dropped"), AuditFailed("does not add up")],
)  # fmt: skip
def test_what_must_stop_a_flow_stops_it_for_good(pipeline: Pipeline, tmp_path: Path, error: LodeError) -> None:
    file = tmp_path / "contract.yaml"
    pipeline.add("bronze", [error, published("bronze")], polled=0.01, remedy=Remedy([file]))
    _, thread = background(pipeline)
    thread.join(5)
    assert not thread.is_alive(), "nothing is left to run"
    file.write_text("edited")
    assert pipeline.runners[0].state == "stopped"
    assert pipeline.diary == ["bronze"]
    assert pipeline.told("flow.blocked") == []


def test_with_once_a_bad_file_is_an_error(pipeline: Pipeline) -> None:
    pipeline.add("zones", [BAD], polled=0.01)
    assert pipeline.run() == {"zones": "stopped"}
    assert pipeline.runners[0].error is BAD


def test_a_blocked_flow_is_made_anew_so_that_an_edited_contract_counts(pipeline: Pipeline, tmp_path: Path) -> None:
    file = tmp_path / "contract.yaml"
    made: list[ScriptedFlow] = []

    def remake() -> ScriptedFlow:
        made.append(ScriptedFlow("zones", [published("zones")], pipeline.diary))
        return made[-1]

    pipeline.add("zones", [BAD], polled=0.05, remedy=Remedy([file]), remake=remake)
    _, thread = background(pipeline)
    until(lambda: pipeline.runners[0].state == "blocked")
    file.write_text("edited")
    until(lambda: pipeline.told("batch.published") == ["zones"])
    end(pipeline, thread)
    assert len(made) == 1
    assert pipeline.diary[:3] == ["zones", "zones closed", "zones"]


def test_the_file_is_compared_with_what_it_was_when_the_batch_failed(tmp_path: Path) -> None:
    file, clock = tmp_path / "zones.csv", [0.0]
    file.write_text("bad")
    watch = Remedy([file], clock=lambda: clock[0])
    watch.wait(BAD)
    assert not watch.worth_a_try()
    clock[0] += 1e6
    assert not watch.worth_a_try(), "time alone does not mend a file"
    file.unlink()
    assert watch.worth_a_try()


class HangingRemedy(Remedy):
    """Its file lies on a server that does not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.answers = threading.Event(), threading.Event()

    def worth_a_try(self) -> bool:
        self.asked.set()
        return self.answers.wait(10)


def test_a_file_that_cannot_be_looked_at_holds_up_no_other_flow_and_not_the_end(pipeline: Pipeline) -> None:
    hanging = HangingRemedy()
    pipeline.add("zones", [ConfigError("Kafka refused us")], polled=0.01, remedy=hanging)
    pipeline.add("other", [], polled=0.01)
    driver, thread = background(pipeline)
    assert hanging.asked.wait(5)
    before = pipeline.diary.count("other")
    until(lambda: pipeline.diary.count("other") > before + 3, 2)
    driver.tell("other", Runner.pause)
    pipeline.stop.set()
    thread.join(3)
    assert not thread.is_alive(), "the run ends"
    hanging.answers.set()


def test_pauses_between_tries_grow_to_a_minute() -> None:
    clock = [0.0]
    watch = Remedy(clock=lambda: clock[0])
    pauses = []
    for _ in range(6):
        watch.wait(ConfigError("refused"))
        began = clock[0]
        while not watch.worth_a_try():
            clock[0] += 1
        pauses.append(clock[0] - began)
    assert pauses == [5, 10, 20, 40, 60, 60]


def test_pause_waits_for_the_batch_and_resume_goes_on(pipeline: Pipeline) -> None:
    began, go_on = threading.Event(), threading.Event()

    def slow(rows: int) -> None:
        began.set()
        go_on.wait(5)
        pipeline.diary.append("step")

    pipeline.add("bronze", [], polled=0.01).step = slow  # type: ignore[method-assign, assignment]
    driver, thread = background(pipeline)
    began.wait(5)
    driver.tell("bronze", Runner.pause)
    assert pipeline.runners[0].state == "running"
    go_on.set()
    until(lambda: pipeline.runners[0].state == "paused")
    time.sleep(0.2)
    assert pipeline.diary == ["step"]
    driver.tell("bronze", Runner.resume)
    until(lambda: len(pipeline.diary) > 2)
    end(pipeline, thread)
    assert pipeline.told("flow.paused") == pipeline.told("flow.resumed") == ["bronze"]


def test_a_restart_begins_a_stopped_flow_anew_beside_the_others(pipeline: Pipeline) -> None:
    fresh = ScriptedFlow("bronze", [published("bronze")], pipeline.diary)
    pipeline.add("bronze", [SourceGap("gone")], polled=0.05, remake=lambda: fresh)
    pipeline.add("other", [], polled=0.05)
    driver, thread = background(pipeline)
    until(lambda: pipeline.runners[0].state == "stopped")
    driver.tell("bronze", Runner.restart)
    until(lambda: pipeline.told("batch.published") == ["bronze"])
    assert pipeline.runners[0].error is None
    end(pipeline, thread)
    assert pipeline.told("flow.restarted") == ["bronze"]


def test_a_restart_during_a_batch_comes_after_it_even_when_that_fails(pipeline: Pipeline) -> None:
    began, go_on = threading.Event(), threading.Event()

    def failing(rows: int) -> None:
        began.set()
        go_on.wait(5)
        raise SourceGap("gone")

    fresh = ScriptedFlow("bronze", [published("bronze")], pipeline.diary)
    pipeline.add("bronze", [], polled=0.05, remake=lambda: fresh).step = failing  # type: ignore[method-assign, assignment]
    driver, thread = background(pipeline)
    began.wait(5)
    driver.tell("bronze", Runner.restart)
    go_on.set()
    until(lambda: pipeline.told("batch.published") == ["bronze"])
    end(pipeline, thread)


def test_a_table_that_was_taken_over_stops_and_the_others_go_on(pipeline: Pipeline) -> None:
    pipeline.add("bronze", [], polled=0.01)
    pipeline.add("gold", [], polled=0.01)
    driver, thread = background(pipeline)
    until(lambda: "gold" in pipeline.diary)
    driver.give_way({"gold": AlreadyRuns("gold was taken over")})
    until(lambda: pipeline.runners[1].state == "stopped")
    before = len(pipeline.diary)
    until(lambda: len(pipeline.diary) > before + 3)
    assert set(pipeline.diary[before + 1 :]) == {"bronze"}
    assert thread.is_alive()
    driver.give_way({"bronze": AlreadyRuns("bronze was taken over")})
    thread.join(5)
    assert not thread.is_alive(), "no table is left"
    assert {event.error for event in read_events(pipeline.folder, BatchRefused)} == {"AlreadyRuns"}


def test_a_table_that_is_taken_over_during_its_batch_ends_after_it_and_alone(pipeline: Pipeline) -> None:
    began, go_on = threading.Event(), threading.Event()

    def slow(rows: int) -> None:
        began.set()
        go_on.wait(5)

    pipeline.add("bronze", [], polled=0.01)
    pipeline.add("gold", [], polled=0.01).step = slow  # type: ignore[method-assign, assignment]
    driver, thread = background(pipeline, workers=2)
    began.wait(5)
    assert driver.give_way({"gold": AlreadyRuns("gold was taken over")}) == [], "its batch is under way"
    go_on.set()
    until(lambda: pipeline.runners[1].state == "stopped")
    assert driver.give_way({"gold": AlreadyRuns("gold was taken over")}) == ["gold"]
    before = len(pipeline.diary)
    until(lambda: len(pipeline.diary) > before + 3)
    end(pipeline, thread)


def test_a_restart_counts_unexpected_errors_from_the_beginning(pipeline: Pipeline) -> None:
    fresh = ScriptedFlow("bronze", [RuntimeError("odd"), published("bronze")], pipeline.diary)
    pipeline.add("bronze", [RuntimeError("odd")] * (MOST_TRIES + 1), polled=0.05, remake=lambda: fresh)
    pipeline.add("other", [], polled=0.05)
    driver, thread = background(pipeline)
    until(lambda: pipeline.runners[0].state == "stopped")
    driver.tell("bronze", Runner.restart)
    until(lambda: pipeline.told("batch.published") == ["bronze"])
    end(pipeline, thread)
    assert pipeline.told("flow.stopped") == ["bronze"], "one strange error after a restart is tried again"


def test_readers_of_a_table_that_was_taken_over_are_kept(pipeline: Pipeline) -> None:
    """Its new keeper publishes, and whoever watches the inputs wakes them."""
    pipeline.add("bronze", [], polled=0.01)
    pipeline.add("silver", [None])
    driver, thread = background(pipeline)
    until(lambda: "silver" in pipeline.diary)
    driver.give_way({"bronze": AlreadyRuns("bronze was taken over")})
    until(lambda: pipeline.runners[0].state == "stopped")
    thread.join(0.8)
    assert thread.is_alive(), "the run goes on for its reader"
    before = pipeline.diary.count("silver")
    driver.wake(["silver"])
    until(lambda: pipeline.diary.count("silver") > before)
    end(pipeline, thread)


def test_a_flow_that_is_still_blocked_after_a_pause_says_so_again(pipeline: Pipeline) -> None:
    """The log's last word is what `lode status` shows."""
    pipeline.add("bronze", [ConfigError("Kafka refused us")] * 1000, polled=0.01, remedy=Remedy())
    driver, thread = background(pipeline)
    until(lambda: pipeline.runners[0].state == "blocked")
    driver.tell("bronze", Runner.pause)
    until(lambda: pipeline.runners[0].state == "paused")
    driver.tell("bronze", Runner.resume)
    until(lambda: len(pipeline.told("flow.blocked")) == 2)
    end(pipeline, thread)
    said = [event.name for event in read_events(pipeline.folder) if event.name.startswith("flow.")]
    assert said == ["flow.blocked", "flow.paused", "flow.resumed", "flow.blocked"]


def test_a_flow_that_is_blocked_again_after_a_retry_says_so_without_another_traceback(pipeline: Pipeline) -> None:
    bad = ConfigError("Kafka refused us")
    bad.__cause__ = OSError("the socket's own words")
    pipeline.add("bronze", [bad, BrokerUnavailable("away"), bad], polled=0.01, remedy=Remedy())
    _, thread = background(pipeline)
    until(lambda: len(pipeline.told("flow.blocked")) == 2)
    end(pipeline, thread)
    first, second = read_events(pipeline.folder, FlowBlocked)
    assert "the socket's own words" in str(first.traceback)
    assert second.traceback is None
    assert first.what == second.what


def test_the_same_trouble_with_other_numbers_is_told_once(pipeline: Pipeline) -> None:
    away = [ConfigError("Kafka refused us", why=f"from port {port} after {port / 7} s") for port in range(50001, 50004)]
    pipeline.add("bronze", [*away, published("bronze")], polled=0.01, remedy=Remedy())
    _, thread = background(pipeline)
    until(lambda: pipeline.told("batch.published") == ["bronze"])
    end(pipeline, thread)
    assert pipeline.told("flow.blocked") == ["bronze"]


def test_a_trouble_that_passed_and_came_back_is_told_in_full(pipeline: Pipeline) -> None:
    bad = ConfigError("Kafka refused us")
    bad.__cause__ = OSError("the socket's own words")
    pipeline.add("bronze", [bad, published("bronze"), bad], polled=0.01, remedy=Remedy())
    _, thread = background(pipeline)
    until(lambda: len(pipeline.told("flow.blocked")) == 2)
    end(pipeline, thread)
    assert all(event.traceback for event in read_events(pipeline.folder, FlowBlocked))
