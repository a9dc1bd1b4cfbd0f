"""Events that were logged, read back as their types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar, overload

from lodestream.observe.event import Event
from lodestream.observe.events import RunStarted
from lodestream.observe.log import FEW

_LAST_BYTES = 256 * 1024

E = TypeVar("E", bound=Event)


def events_folder(state_dir: Path) -> Path:
    return state_dir / "events"


@overload
def read_events(
    state_dir: Path, *, run: str | None = None, table: str | None = None, name: str | None = None
) -> Iterator[Event]: ...


@overload
def read_events(
    state_dir: Path, *types: type[E], run: str | None = None, table: str | None = None, name: str | None = None
) -> Iterator[E]: ...


def read_events(
    state_dir: Path, *types: type[Event], run: str | None = None, table: str | None = None, name: str | None = None
) -> Iterator[Event]:
    """All logged events that match, oldest run first: of these types, of one run or table, with a name that begins so.

    A line cut off by a crash is skipped; an event of another version is an `OtherEvent`.
    """
    for path in sorted(events_folder(state_dir).glob("*.jsonl")):
        if run is not None and path.stem != run:
            continue
        for event in _read(path):
            if (
                (table is None or event.table == table)
                and (name is None or event.name.startswith(name))
                and (not types or isinstance(event, types))
            ):
                yield event


def run_starts(state_dir: Path) -> Iterator[RunStarted]:
    """How each run began, the newest first. Commands beside a run have a log and no beginning."""
    for path in sorted(events_folder(state_dir).glob("*.jsonl"), reverse=True):
        first = next(_read(path), None)
        if isinstance(first, RunStarted):
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
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # cut off by a crash


def _read(path: Path) -> Iterator[Event]:
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            event = _parsed(line)
            if event is not None:
                yield event
