"""Words to a running driver: a folder of small files beside its state, so that only who may write there is heard.

The driver writes down who it is. A command puts a question beside it, the driver answers in a file of the same name.
No JVM on either side.
"""

from __future__ import annotations

import json
import logging
import shutil
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from lodestream.errors import LodeError
from lodestream.runtime.process import ProcessId

log = logging.getLogger(__name__)

Word = Literal["list", "pause", "resume", "restart"]
_ABOUT = "run.json"
_ASKED, _ANSWER = ".ask", ".answer"
_POLL = 0.05
ANSWER_SECONDS = 15.0


class NothingRuns(LodeError):
    """No driver of this project runs on this machine, or none that keeps the table."""


class NoAnswer(LodeError):
    """A driver lives and does not answer."""

    exit_code = 75


@dataclass(frozen=True, slots=True)
class RunningDriver:
    """A driver that lives on this machine."""

    run: str
    process: ProcessId
    started: float
    tables: tuple[str, ...]
    folder: Path

    def ask(self, word: Word, table: str | None = None, seconds: float = ANSWER_SECONDS) -> Any:
        """What the driver answers."""
        name = uuid.uuid4().hex
        _put(self.folder / f"{name}{_ASKED}", {"word": word, "table": table})
        answer, deadline = self.folder / f"{name}{_ANSWER}", time.monotonic() + seconds
        while time.monotonic() < deadline:
            if answer.exists():
                found = json.loads(answer.read_text(encoding="utf-8"))
                answer.unlink(missing_ok=True)
                return found
            if self.process.gone:
                raise NothingRuns(f"run {self.run} has just ended", fix="start it: `lode run`")
            time.sleep(_POLL)
        (self.folder / f"{name}{_ASKED}").unlink(missing_ok=True)
        raise NoAnswer(
            f"run {self.run} does not answer",
            why=f"process {self.process.pid} lives, and has not answered for {seconds:g} s",
            fix="try again; if it stays so, end that process and start `lode run`",
        )


def running_drivers(state_dir: Path) -> list[RunningDriver]:
    """Those that live on this machine, oldest first."""
    found = [one for file in _folder(state_dir).glob(f"*/{_ABOUT}") if (one := _about(file)) is not None]
    return sorted((one for one in found if one.process.near and not one.process.gone), key=lambda one: one.started)


class ControlDesk:
    """The driver's side. `attend` is called every moment and answers what was asked meanwhile."""

    def __init__(
        self, state_dir: Path, run: str, tables: Sequence[str], answer: Callable[[Word, str | None], Any]
    ) -> None:
        self._folder = _folder(state_dir) / run
        self._answer = answer
        self._about = {
            "run": run, "process": asdict(ProcessId.own()), "started": time.time(), "tables": list(tables),
        }  # fmt: skip

    def open(self) -> None:
        try:
            self._sweep()
            self._folder.mkdir(parents=True, exist_ok=True)
            _put(self._folder / _ABOUT, self._about)
        except OSError as error:
            log.warning("control.closed folder=%s error=%s", self._folder, error)

    def attend(self) -> None:
        try:
            asked = sorted(self._folder.glob(f"*{_ASKED}"))
        except OSError:
            return
        for file in asked:
            self._attend(file)

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _attend(self, file: Path) -> None:
        try:
            question = json.loads(file.read_text(encoding="utf-8"))
            file.unlink(missing_ok=True)
            answer = self._answer(question["word"], question.get("table"))
            _put(file.with_suffix(_ANSWER), answer)
        except (OSError, ValueError, KeyError) as error:
            log.warning("control.unanswered file=%s error=%s", file.name, error)

    def _sweep(self) -> None:
        """Drivers that were killed leave their folder behind."""
        for folder in self._folder.parent.glob("*"):
            one = _about(folder / _ABOUT)
            if one is not None and one.process.gone:
                shutil.rmtree(folder, ignore_errors=True)


def _folder(state_dir: Path) -> Path:
    return state_dir / "control"


def _about(file: Path) -> RunningDriver | None:
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
        return RunningDriver(
            raw["run"], ProcessId(**raw["process"]), float(raw["started"]), tuple(raw["tables"]), file.parent
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _put(file: Path, content: Any) -> None:
    """Whole or not at all: a reader never meets half of it."""
    aside = file.with_suffix(f".{uuid.uuid4().hex}.tmp")
    aside.write_text(json.dumps(content, default=str), encoding="utf-8")
    aside.replace(file)
