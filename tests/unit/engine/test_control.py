"""Commands that speak to a running driver, through the folder beside its state."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from lodestream.engine.attendant import Attendant, Duty
from lodestream.engine.control import ControlDesk, NoAnswer, NothingRuns, running_drivers
from lodestream.runtime.process import ProcessId


def answer(word: str, table: str | None) -> Any:
    return {"word": word, "table": table}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[ControlDesk]:
    found = ControlDesk(tmp_path, "run1", ["silver.a"], answer)
    found.open()
    yield found
    found.close()


def test_a_driver_is_found_and_answers(tmp_path: Path, desk: ControlDesk) -> None:
    attendant = Attendant(Duty("control", 0.02, desk.attend))
    attendant.start()
    (driver,) = running_drivers(tmp_path)
    assert (driver.run, driver.tables) == ("run1", ("silver.a",))
    assert driver.ask("restart", "silver.a") == {"word": "restart", "table": "silver.a"}
    attendant.close()
    assert sorted(file.name for file in driver.folder.iterdir()) == ["run.json"], "nothing is left behind"


def test_a_driver_that_has_ended_is_not_found(tmp_path: Path, desk: ControlDesk) -> None:
    desk.close()
    assert running_drivers(tmp_path) == []


def test_a_killed_driver_is_not_found_and_the_next_one_sweeps_up(tmp_path: Path) -> None:
    own = ProcessId.own()
    dead = ProcessId(own.host, own.machine, own.pid, own.began - 500)
    folder = tmp_path / "control" / "killed"
    folder.mkdir(parents=True)
    about = {"run": "killed", "process": asdict(dead), "started": 1.0, "tables": ["silver.a"]}
    (folder / "run.json").write_text(json.dumps(about))
    assert running_drivers(tmp_path) == []
    ControlDesk(tmp_path, "next", ["silver.a"], answer).open()
    assert [one.run for one in running_drivers(tmp_path)] == ["next"]
    assert not folder.exists()


def test_a_driver_that_hangs_is_said_to(tmp_path: Path, desk: ControlDesk) -> None:
    (driver,) = running_drivers(tmp_path)
    with pytest.raises(NoAnswer, match="run1 does not answer"):
        driver.ask("list", seconds=0.2)
    desk.attend()
    assert sorted(file.name for file in driver.folder.iterdir()) == ["run.json"], "the question was taken back"


def test_a_question_that_cannot_be_read_ends_nothing(tmp_path: Path, desk: ControlDesk) -> None:
    (driver,) = running_drivers(tmp_path)
    (driver.folder / "x.ask").write_text("{")
    thread = threading.Thread(target=lambda: found.append(driver.ask("list", seconds=5)))
    found: list[Any] = []
    thread.start()
    while thread.is_alive():
        desk.attend()
    assert found == [{"word": "list", "table": None}]


def test_a_driver_that_dies_meanwhile_is_not_waited_for(tmp_path: Path, desk: ControlDesk) -> None:
    own = ProcessId.own()
    (driver,) = running_drivers(tmp_path)
    object.__setattr__(driver, "process", ProcessId(own.host, own.machine, own.pid, own.began - 500))
    with pytest.raises(NothingRuns, match="has just ended"):
        driver.ask("list", seconds=30)
