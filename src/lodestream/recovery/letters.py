"""Dead letters as a person reads them: without a JVM, beside a run, and when nothing runs."""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lodestream.flows.letters.attempts import judge_letters
from lodestream.names import dead_of, feed_of
from lodestream.recovery.choice import Choice, State
from lodestream.sources.codecs.kinds import formats
from lodestream.tables.inspect import Inspector, TableView
from lodestream.tables.notes import OWN, SETTLED

_CONTENT = ("key", "value", "headers")
# A number, a date or a time as a whole, with its sign; the 8 of UTF-8 is part of a name.
_NUMBER = re.compile(r"(?<![\w.-])-?(?:0x[0-9a-fA-F]+|\d+(?:[.:T-]\d+)*(?:[eE][+-]?\d+)?)(?![\w])")
# Reasons that begin with what spoke, and go on with what it said; those of decoders begin with their format.
_NAMED = ("rule", "expect", "raised")


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter. `pending` letters belong to a batch that is not published (yet)."""

    letter: str
    state: State
    reasons: tuple[str, ...]
    contract: str | None
    batch: int | None
    run: str | None
    dead_at: datetime
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp: datetime | None = None
    file: str | None = None
    row: int | None = None
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    decided_at: datetime | None = None
    decided_by: int | None = None
    note: str | None = None

    @property
    def group(self) -> str:
        """What letters with the same trouble have in common: their reasons without the values behind them."""
        return "; ".join(dict.fromkeys(map(_trouble, self.reasons))) or "no reason"

    @property
    def coordinates(self) -> str:
        if self.file is not None:
            return f"{self.file}:{self.row}"
        within = "/".join(str(one) for one in (self.topic, self.partition) if one is not None)
        return f"{within}@{self.offset}" if self.offset is not None else ""


@dataclass(slots=True)
class Letters:
    """The chosen letters of one table, oldest first, and how many there are in all.

    `reasons` counts each reason by itself, `groups` the letters that have the same ones.
    """

    table: str
    found: list[Letter] = field(default_factory=list)
    total: int = 0
    states: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    groups: Counter[str] = field(default_factory=Counter)


def read_letters(
    inspector: Inspector, table: str, choice: Choice, states: tuple[State, ...], *, content: bool = False
) -> Letters | None:
    """The newest `limit` letters that match; None when the table has no dead letters and never had."""
    view = inspector.look(dead_of(table))
    if view is None or view.head() is None:
        return None
    # The feed of a keyed table carries its positions, and so names the attempts.
    main = inspector.look(feed_of(table)) or inspector.look(table)
    reading = _Reading(view, main, choice)
    gathered = Letters(table)
    newest: list[tuple[datetime, str, Letter]] = []
    for raw in reading.rows(content):
        one = reading.letter(raw)
        if one is None or one.state not in states or not _matches(one, choice):
            continue
        gathered.total += 1
        gathered.states[one.state] += 1
        gathered.reasons.update({_kind(reason) for reason in one.reasons})
        gathered.groups[one.group] += 1
        heapq.heappush(newest, (one.dead_at, one.letter, one))
        if choice.limit is not None and len(newest) > choice.limit:
            heapq.heappop(newest)
    gathered.found = [one for _, _, one in sorted(newest, key=lambda item: item[:2])]
    return gathered


def open_letters(view: TableView) -> int:
    """How many letters nobody has decided on, by counting decisions: files without any are not even opened."""
    head = view.head()
    decided = view.table.scan("state != 'open'", selected_fields=("letter",)).to_arrow().column("letter")
    return head.live_rows - len(decided) - len(decided.unique()) if head else 0


class _Reading:
    def __init__(self, view: TableView, main: TableView | None, choice: Choice) -> None:
        self._view = view
        self._filter = _pushed(choice)
        verdict = judge_letters(view, main, OWN, SETTLED) if main is not None else None
        self._orphans = frozenset(verdict.orphans) if verdict else frozenset()
        self._pending = frozenset(verdict.open) if verdict else frozenset()
        self._decided = self._decisions()

    def rows(self, content: bool) -> Iterator[Mapping[str, Any]]:
        names = [one.name for one in self._view.table.schema().fields if content or one.name not in _CONTENT]
        wanted = " and ".join(["state = 'open'", *self._filter])
        for batch in self._view.table.scan(wanted, selected_fields=tuple(names)).to_arrow_batch_reader():
            yield from batch.to_pylist()

    def letter(self, raw: Mapping[str, Any]) -> Letter | None:
        if raw["attempt"] in self._orphans:
            return None
        decided = self._decided.get(raw["letter"])
        state: State = "pending" if raw["attempt"] in self._pending else decided["state"] if decided else "open"
        own = {
            name: raw[name] for name in Letter.__slots__ if name in raw and name not in ("reasons", "headers", "state")
        }
        return Letter(
            **own,
            state=state,
            reasons=tuple(raw["reasons"] or ()),
            headers=tuple((one["key"], one["value"]) for one in raw.get("headers") or ()),
            decided_at=decided["dead_at"] if decided else None,
            decided_by=decided["batch"] if decided else None,
            note=next(iter(decided["reasons"] or ()), None) if decided else None,
        )

    def _decisions(self) -> dict[str, Mapping[str, Any]]:
        """What became of letters. One that was replayed and discarded at the same time is in the table."""
        names = ("letter", "state", "attempt", "dead_at", "batch", "reasons")
        found: dict[str, Mapping[str, Any]] = {}
        for batch in self._view.table.scan("state != 'open'", selected_fields=names).to_arrow_batch_reader():
            for row in batch.to_pylist():
                void = row["attempt"] in self._orphans or row["attempt"] in self._pending
                if not void and (row["state"] == "replayed" or row["letter"] not in found):
                    found[row["letter"]] = row
        return found


def _pushed(choice: Choice) -> list[str]:
    """What Iceberg can skip files by."""
    held = []
    if choice.since is not None:
        held.append(f"dead_at >= '{choice.since.astimezone(UTC).isoformat()}'")
    if choice.until is not None:
        held.append(f"dead_at < '{choice.until.astimezone(UTC).isoformat()}'")
    return held if choice.batch is None else [*held, f"batch = {choice.batch:d}"]


def _matches(one: Letter, choice: Choice) -> bool:
    named = not choice.letters or one.letter.startswith(choice.letters)
    wanted = (choice.reason or "").lower()
    said = [reason.lower() for reason in one.reasons]
    broke = not choice.rule or any(reason == rule or reason.startswith(f"{rule}: ")
                                   for reason in said for rule in choice.broken)  # fmt: skip
    return named and broke and (not wanted or any(wanted in reason for reason in said))


def _kind(reason: str) -> str:
    """A reason without the offending value behind it, to count by."""
    first, _, rest = reason.partition(": ")
    return f"{first}: {rest.partition(': ')[0]}" if first in (*_NAMED, *formats()) else first


def _trouble(reason: str) -> str:
    """The kind of a reason; a decoder says where in the bytes it stopped, and that differs from event to event."""
    kind = _kind(reason)
    return _NUMBER.sub("#", kind) if kind.startswith(tuple(f"{one}:" for one in formats())) else kind
