"""Dead letters judged again by the flow as it is now: which events pass, and why the others do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, collect_list, count, flatten, lit
from pyspark.sql.functions import max as greatest_of

from lodestream.contracts.quoting import name as quoted
from lodestream.errors import AuditFailed
from lodestream.flows.batch import Batch, Span
from lodestream.flows.guests.visit import Visit
from lodestream.flows.letters.attempts import BESIDE
from lodestream.flows.letters.envelope import restored
from lodestream.flows.writing.feed_rows import FeedBatch
from lodestream.flows.writing.judged import JudgedBatch
from lodestream.names import CARRIED, EVENT, REASONS
from lodestream.recovery.open_letters import OpenLetters
from lodestream.sources.source import Source
from lodestream.sources.table.changes import KeyedChanges
from lodestream.tables.snapshot import Positions

_NO_ROW = "the function gives no row for it"
_PARTLY = "rows of the same event are in the table, and without keys they would come twice"


@dataclass(frozen=True, slots=True)
class Failing:
    """Letters of one event that stay open: what they said before, and what stands against them now."""

    letters: tuple[str, ...]
    before: tuple[str, ...]
    now: tuple[str, ...]


class Trial:
    """One share of the chosen letters. `release` it when done. `positions` is how far the table has read its inputs."""

    def __init__(self, visit: Visit, letters: OpenLetters, events: DataFrame, positions: Positions) -> None:
        self._visit = visit
        self._terms = visit.terms
        self._lake = visit.context.lake
        self._open = letters
        self._positions = positions
        self._letters = letters.of_events(events)
        self._held = _held(self._letters)
        self._batches: list[Batch] = []
        self._passed: list[str] = []
        self.failing: tuple[Failing, ...] = ()
        self.letters = sum(len(one.ids) for one in self._held.values())
        if self._held:
            self._judge()

    @property
    def passing(self) -> int:
        """How many letters may be replayed."""
        return self.letters - sum(len(one.letters) for one in self.failing)

    @property
    def passed(self) -> DataFrame:
        return self._letters.join(self._named(self._passed), EVENT, "left_semi")

    def batch(self) -> Batch:
        """The rows of the events that pass, and nothing else."""
        return self._batches[0] if not self.failing else self._only_passed()

    def release(self) -> None:
        for batch in self._batches:
            batch.release()

    def _judge(self) -> None:
        trial = self._make(self._raw(), len(self._held))
        verdicts = _verdicts(trial.judged.rows)
        self.failing = tuple(
            Failing(one.ids, one.reasons, now)
            for event, one in self._held.items()
            if (now := self._objections(verdicts.get(event), one))
        )
        stopped = {letter for one in self.failing for letter in one.letters}
        self._passed = [event for event, one in self._held.items() if stopped.isdisjoint(one.ids)]

    def _objections(self, verdict: tuple[int, tuple[str, ...]] | None, held: _Held) -> tuple[str, ...]:
        if verdict is None:
            settled = self._terms.table.allow_no_rows or self._visit.follows is not None
            return () if settled else (_NO_ROW,)
        rows, reasons = verdict
        # Which of the rows it gives now are those in the table, nobody can say: new code may give fewer, or others.
        partly = rows > len(held.ids) if held.beside is None else held.beside > 0
        return reasons or ((_PARTLY,) if partly and not self._terms.keys else ())

    def _only_passed(self) -> Batch:
        made = self._make(self._raw().join(self._named(self._passed), EVENT, "left_semi"), len(self._passed))
        if made.counts["dead"]:
            raise AuditFailed(
                f"{self._terms.name}: {made.counts['dead']:,} rows failed that passed a moment ago",
                why="the declared function gives other rows each time it runs (random values, the clock)",
                fix="make the function depend on its inputs alone",
            )
        return made

    def _make(self, raw: DataFrame, events: int) -> JudgedBatch | FeedBatch:
        inputs = self._visit.inputs
        frames = {source.name: self._input(source) for source in inputs.sources}
        frames[inputs.driving] = raw
        made = self._visit.judged(frames, Span({}, {}, events))
        self._batches.append(made)
        return made

    def _input(self, source: Source) -> DataFrame:
        """Lookups as they are now. A letter holds the row of the driving input; other streams have nothing new."""
        latest = source.latest()
        if source.name in self._visit.inputs.lookups and latest is not None:
            return source.read(latest, latest)
        return self._lake.whole(source.name).limit(0)

    def _raw(self) -> DataFrame:
        driving = self._lake.whole(self._visit.inputs.driving)
        raw = restored(self._letters.dropDuplicates([EVENT]), driving.schema, [EVENT])
        return raw if self._visit.follows is None else self._as_followed(raw, self._visit.follows, driving)

    def _as_followed(self, raw: DataFrame, follows: KeyedChanges, driving: DataFrame) -> DataFrame:
        """The rows that the keys of the letters have now, as far as this table has followed: theirs may be long gone.

        A key whose row is gone gives none, and of several letters of a key one stands for all: so they are settled.
        """
        position = self._positions.get(follows.name)
        keys = [quoted(one) for one in self._terms.keys]
        asked = raw.groupBy(*keys).agg(greatest_of(EVENT).alias(EVENT))
        if position is None:
            return driving.withColumn(EVENT, lit("")).limit(0)
        now = driving.limit(0).unionByName(follows.now(position), allowMissingColumns=True)
        return now.join(asked, list(self._terms.keys), "inner").select(*now.columns, EVENT)

    def _named(self, events: list[str]) -> DataFrame:
        return self._open.named(events)


@dataclass(frozen=True, slots=True)
class _Held:
    """The letters of one event, their reasons, and how many rows of it are in the table; None when nobody noted it."""

    ids: tuple[str, ...]
    reasons: tuple[str, ...]
    beside: int | None


def _held(letters: DataFrame) -> dict[str, _Held]:
    grouped = letters.groupBy(EVENT).agg(
        collect_list("letter").alias("ids"),
        flatten(collect_list("reasons")).alias("reasons"),
        greatest_of(BESIDE).alias(BESIDE),
    )
    return {row[EVENT]: _Held(tuple(row.ids), tuple(row.reasons), row[BESIDE]) for row in grouped.toLocalIterator()}


def _verdicts(judged: DataFrame) -> Mapping[str, tuple[int, tuple[str, ...]]]:
    """Per event how many rows it gives now, and everything that stands against them."""
    grouped = judged.groupBy(col(f"{CARRIED}.{EVENT}").alias(EVENT)).agg(
        count(lit(1)).alias("rows"),
        flatten(collect_list(REASONS)).alias("reasons"),
    )
    return {row[EVENT]: (row.rows, tuple(dict.fromkeys(row.reasons))) for row in grouped.toLocalIterator()}
