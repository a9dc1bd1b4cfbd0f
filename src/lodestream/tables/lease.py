"""Who keeps which tables: a lease in the catalog, so that a second driver learns of the first before it begins.

The one rule needs none of this: without a lease, of two drivers one still loses its first race and stops. With it, the
newcomer stops, and not the one that has been running.
"""

from __future__ import annotations

import json
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from lodestream.clock import utc
from lodestream.errors import AlreadyRuns, CatalogUnavailable
from lodestream.runtime.process import ProcessId

TABLE = "lode.leases"
PREFIX = "lode.lease."
RENEW_SECONDS = 5.0
LIMIT_SECONDS = 20.0
# How long who takes over waits for the holder to end its batches: both at work would race, and either might lose.
YIELD_SECONDS = 30.0
_ASKED = "asked."
# How often who takes over asks again: a holder elsewhere gives way to one that is seen to live, and to nobody else.
_ASK_SECONDS = 2.0
_TRIES = 20


@dataclass(frozen=True, slots=True)
class Renewal:
    """What a holder learns when it renews: tables that another run asks for, and those that one has taken."""

    asked: Mapping[str, Holder]
    lost: Mapping[str, Holder]


@dataclass(frozen=True, slots=True)
class Holder:
    """A run that keeps a table, as of its last renewal. `beat` counts them: no clock needs to agree with another."""

    run: str
    process: ProcessId
    started: float
    renewed: float
    beat: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Holder | None:
        try:
            raw = json.loads(text)
            return cls(**{**raw, "process": ProcessId(**raw["process"])})
        except (ValueError, TypeError, KeyError):
            return None  # of another version: who cannot be understood cannot be waited for

    def shown(self) -> str:
        since = utc(self.started)
        return f"run {self.run} on {self.process.host}, process {self.process.pid}, since {since}"


class Conflict(CatalogUnavailable):
    """The book was changed since it was read."""


class LeaseBook(ABC):
    """Where leases are written down: one page per table."""

    # Seconds after which a written page is read again, because the catalog does not refuse a change that came late.
    settle: float = 0.0

    @abstractmethod
    def read(self) -> dict[str, Holder]:
        """The holder of each table, read anew."""

    @abstractmethod
    def write(self, changes: Mapping[str, Holder | None]) -> None:
        """Change these pages, None removes one. Raises `Conflict` when any was changed since the last `read`."""


class Lease:
    """The tables that one run holds. `take` once, `renew` every few seconds, `release` at the end."""

    def __init__(
        self,
        book: LeaseBook,
        run: str,
        *,
        process: ProcessId | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._book = book
        self._clock = clock
        self._monotonic = monotonic
        self._sleep = sleep
        now = clock()
        self._me = Holder(run, process or ProcessId.own(), started=now, renewed=now)
        self._held: frozenset[str] = frozenset()
        # Who asks for our tables: the beat that each was first seen with, and when.
        self._asking: dict[str, tuple[Holder, float]] = {}

    @property
    def held(self) -> frozenset[str]:
        return self._held

    def take(self, tables: Iterable[str], *, over: bool = False) -> None:
        """Hold these tables. Raises `AlreadyRuns` when another run does, unless it is taken `over` from it.

        A holder whose process is seen to be dead is nobody. One of another machine has the time limit to show that it
        lives: the wait ends at its next renewal, or when the limit has passed without one. A holder that is to be
        succeeded is asked, and given time to end its batches.
        """
        wanted = frozenset(tables)
        first_seen: dict[tuple[str, int], float] = {}
        until = self._monotonic() + YIELD_SECONDS
        asked = -math.inf
        while True:
            living = {name: one for name, one in self._others(wanted).items() if not one.process.gone}
            if not living or (over and self._monotonic() > until):
                if self._take(wanted):
                    return
            elif over:
                if self._monotonic() - asked >= _ASK_SECONDS:
                    self._write(dict.fromkeys((_ASKED + name for name in wanted), self._beaten()))
                    asked = self._monotonic()
                self._sleep(0.5)
            else:
                self._wait_or_refuse(living, first_seen)

    def renew(self) -> Renewal:
        """Say that we live. What another run has taken is ours no more; what one asks for is to be released soon."""
        lost = self._others(self._held)
        self._held -= lost.keys()
        if self._held:
            self._write(dict.fromkeys(self._held, self._beaten()))
        return Renewal(self._asked(), lost)

    def _asked(self) -> dict[str, Holder]:
        """Who is seen to live and to ask. A page that nobody renews is of one that was killed, and is removed."""
        pages = self._others(_ASKED + name for name in self._held)
        self._asking = {page: known for page, known in self._asking.items() if page in pages}
        found, dead = {}, []
        for page, one in pages.items():
            first, since = self._asking.setdefault(page, (one, self._monotonic()))
            if one.process.gone:
                dead.append(page)
            elif one.process.near or (one.run == first.run and one.beat != first.beat):
                found[page.removeprefix(_ASKED)] = one
            elif one.run != first.run:
                self._asking[page] = (one, self._monotonic())
            elif self._monotonic() - since > LIMIT_SECONDS:
                dead.append(page)
        if dead:
            self._write(dict.fromkeys(dead))
        return found

    def release(self, tables: Iterable[str] | None = None) -> None:
        """Free these tables for others, or all that are held."""
        given = self._held if tables is None else self._held.intersection(tables)
        if not given:
            return
        pages = self._book.read()
        mine = {name for name in given if name in pages and pages[name].run == self._me.run}
        self._held -= given
        if mine:
            self._write(dict.fromkeys(mine))

    def _take(self, wanted: frozenset[str]) -> bool:
        changes: dict[str, Holder | None] = {_ASKED + name: None for name in wanted}
        if not self._write({**changes, **dict.fromkeys(wanted, self._beaten())}) or not self._kept(wanted):
            return False
        self._held = wanted
        return True

    def _others(self, wanted: Iterable[str]) -> dict[str, Holder]:
        pages = self._book.read()
        return {name: pages[name] for name in wanted if name in pages and pages[name].run != self._me.run}

    def _wait_or_refuse(self, living: Mapping[str, Holder], first_seen: dict[tuple[str, int], float]) -> None:
        """Returns when it is worth another look; raises when one of them surely lives."""
        for name, one in living.items():
            seen = first_seen.setdefault((one.run, one.beat), self._monotonic())
            renewed = any(run == one.run and beat != one.beat for run, beat in first_seen)
            fresh = one.process.near and abs(self._clock() - one.renewed) < LIMIT_SECONDS
            if renewed or fresh:
                raise already_runs(name, one)
            waited = self._monotonic() - seen
            # Long silent already, by a clock that may not be ours: two renewals are enough to be sure.
            stale = self._clock() - one.renewed > LIMIT_SECONDS and waited > 2 * RENEW_SECONDS
            if stale or waited > LIMIT_SECONDS:
                self._write({name: None})
        self._sleep(0.5)

    def _beaten(self) -> Holder:
        self._me = replace(self._me, renewed=self._clock(), beat=self._me.beat + 1)
        return self._me

    def _write(self, changes: Mapping[str, Holder | None]) -> bool:
        """Whether it is written. A sibling that holds other tables may renew at the same instant: then once more."""
        for attempt in range(_TRIES):
            try:
                self._book.write(changes)
            except Conflict:
                if self._others(changes):
                    return False
                self._sleep(0.01 * attempt)
            else:
                return True
        raise CatalogUnavailable(f"{TABLE} changed under {_TRIES} attempts to renew a lease")

    def _kept(self, wanted: Iterable[str]) -> bool:
        if self._book.settle:
            self._sleep(self._book.settle)
        return not self._others(wanted)


def already_runs(table: str, holder: Holder) -> AlreadyRuns:
    return AlreadyRuns(
        f"{table} is kept by another driver",
        why=holder.shown(),
        fix="stop that one; or `lode run --take-over` ends it; or split the tables between the two with --only",
        holder=holder_json(holder),
    )


def holder_json(holder: Holder) -> dict[str, Any]:
    process = holder.process
    return {"run": holder.run, "host": process.host, "pid": process.pid, "started": holder.started}


def refuse_second(pages: Mapping[str, Holder], tables: Iterable[str], now: float) -> None:
    """Raise `AlreadyRuns` when a living process of this machine holds one of the tables; others are left to `take`."""
    for name in tables:
        one = pages.get(name)
        if one is not None and one.process.near and not one.process.gone and abs(now - one.renewed) < LIMIT_SECONDS:
            raise already_runs(name, one)


def pages_of(properties: Mapping[str, str]) -> dict[str, Holder]:
    """The leases among the properties of the table that holds them."""
    found = {
        key.removeprefix(PREFIX): Holder.from_json(text) for key, text in properties.items() if key.startswith(PREFIX)
    }
    return {name: holder for name, holder in found.items() if holder is not None}
