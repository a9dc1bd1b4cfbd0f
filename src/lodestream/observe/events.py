"""Everything that happens in a run, as an append-only log of typed lines.

One file per run under the project's state folder: a second process can read it while the run goes on, and deleting it
loses history, never progress.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

log = logging.getLogger("lodestream.events")

# Beside the log, its events that are few: who asks for the state of flows need not read a million batches.
FEW = ".few"
_MANY = ("batch.published",)
_LAST_BYTES = 256 * 1024
# Somebody should look: a flow makes no progress, and the log says so at the level that wakes people.
ALERTS = ("flow.blocked", "flow.stopped", "batch.refused")


@dataclass(frozen=True, slots=True)
class Event:
    name: str
    time: float
    run: str
    table: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"time": self.time, "run": self.run, "event": self.name, "table": self.table, **self.fields}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Event:
        rest = {key: value for key, value in raw.items() if key not in ("time", "run", "event", "table")}
        return cls(raw["event"], float(raw["time"]), raw["run"], raw.get("table"), rest)

    def line(self) -> str:
        shown = {"flow": self.table, **self.fields}
        return " ".join([self.name, *(f"{k}={_short(v)}" for k, v in shown.items() if v is not None)])


class EventLog:
    """Where a run's events go. Safe to call from every flow's thread."""

    def __init__(self, folder: Path, run: str, listener: Callable[[Event], None] | None = None) -> None:
        self.run = run
        self._path = folder / f"{run}.jsonl"
        self._listener = listener
        self._lock = threading.Lock()
        self._file: IO[str] | None = None
        self._few: IO[str] | None = None
        self._unread: list[Event] = []

    def emit(self, name: str, table: str | None = None, **fields: Any) -> Event:
        event = Event(name, time.time(), self.run, table, fields)
        with self._lock:
            self._write(event)
            self._unread.append(event)
        log.log(logging.ERROR if name in ALERTS else logging.INFO, "%s", event.line())
        if self._listener:
            self._listener(event)
        return event

    def take(self) -> list[Event]:
        """Events since the last call: what the events table still lacks."""
        with self._lock:
            taken, self._unread = self._unread, []
        return taken

    def close(self) -> None:
        with self._lock:
            for one in (self._file, self._few):
                if one:
                    one.close()
            self._file = self._few = None

    def _write(self, event: Event) -> None:
        try:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._path.open("a", encoding="utf-8", buffering=1)
                self._few = self._path.with_suffix(FEW).open("a", encoding="utf-8", buffering=1)
            line = json.dumps(event.to_json(), default=str) + "\n"
            self._file.write(line)
            if self._few is not None and event.name not in _MANY:
                self._few.write(line)
        except OSError as error:
            # A full disk must not stop the flows: the log is history, the tables are the truth.
            log.warning("events.lost path=%s error=%s", self._path, error)


def events_folder(state_dir: Path) -> Path:
    return state_dir / "events"


def read_events(
    state_dir: Path, *, run: str | None = None, table: str | None = None, name: str | None = None
) -> Iterator[Event]:
    """All logged events that match, oldest run first. A line cut off by a crash is skipped."""
    for path in sorted(events_folder(state_dir).glob("*.jsonl")):
        if run is not None and path.stem != run:
            continue
        for event in _read(path):
            if (table is None or event.table == table) and (name is None or event.name.startswith(name)):
                yield event


def run_starts(state_dir: Path) -> Iterator[Event]:
    """How each run began, the newest first. Commands beside a run have a log and no beginning."""
    for path in sorted(events_folder(state_dir).glob("*.jsonl"), reverse=True):
        first = next(_read(path), None)
        if first is not None and first.name == "run.started":
            yield first


def last_events(state_dir: Path, run: str) -> list[Event]:
    """The end of a run's log without its batches: how its flows are, and whether it has ended."""
    log_file = events_folder(state_dir) / f"{run}.jsonl"
    few = log_file.with_suffix(FEW)
    try:
        with (few if few.exists() else log_file).open("rb") as lines:
            size = lines.seek(0, 2)
            lines.seek(max(0, size - _LAST_BYTES))
            end = lines.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    whole = end if size <= _LAST_BYTES else end.partition("\n")[2]
    return [event for event in map(_parsed, whole.splitlines()) if event is not None]


def _parsed(line: str) -> Event | None:
    try:
        return Event.from_json(json.loads(line))
    except (ValueError, KeyError):
        return None  # cut off by a crash


def _read(path: Path) -> Iterator[Event]:
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            event = _parsed(line)
            if event is not None:
                yield event


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    text = str(value) if not isinstance(value, Mapping) else json.dumps(value, separators=(",", ":"))
    return text if len(text) <= 120 else text[:117] + "..."
