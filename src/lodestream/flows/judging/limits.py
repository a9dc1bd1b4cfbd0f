"""Stop before publishing when more rows break the contract than it allows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, count_if, exists, lit

from lodestream.contracts import Contract
from lodestream.contracts.refusal import unexpected, violation
from lodestream.contracts.thresholds import Tally, breaches, longest_window
from lodestream.contracts.violations import taken
from lodestream.flows.letters.attempts import History
from lodestream.flows.letters.table import DeadLetters
from lodestream.names import REASONS
from lodestream.pipeline import Expectation
from lodestream.tables.lake import Lake
from lodestream.tables.store import TableStore

# What was published since a moment (epoch seconds): the tallies by batch, with rows per each of the given reasons.
Recall = Callable[[float, Sequence[str]], Mapping[int, Tally]]


class LimitWatch:
    """Remembers what the last batches refused, as far back as the contract's limits look.

    A run that has just begun asks `recall` what the ones before it refused: a restart does not begin to count anew.
    """

    def __init__(
        self,
        table: str,
        contract: Contract | None,
        expectations: Sequence[Expectation] = (),
        recall: Recall | None = None,
    ) -> None:
        self._table = table
        self._contract = contract
        self._window = longest_window(contract) if contract else 0.0
        self._fatal = [f"expect: {one.name}" for one in expectations if one.action == "fail"]
        self._recall = recall
        self._tallies: dict[int, Tally] | None = None

    @classmethod
    def of(
        cls, table: str, contract: Contract | None, expectations: Sequence[Expectation], recall: Recall
    ) -> LimitWatch | None:
        """None where nothing limits how many rows may be refused."""
        watch = cls(table, contract, expectations, recall)
        return watch if watch.limited else None

    @property
    def limited(self) -> bool:
        return bool(self._fatal) or (self._contract is not None and _limits(self._contract))

    def check(self, judged: DataFrame, batch: int, rows: int, refused: int) -> None:
        """Raise `ContractViolation` for the first limit that this batch exceeds."""
        reasons = _counted(judged, self._known(), REASONS) if refused else {}
        tally = Tally(time.time(), rows, refused, reasons)
        for reason in filter(reasons.get, self._fatal):
            raise unexpected(self._table, batch, rows, reason, reasons[reason])
        if self._contract is None:
            return
        # Without the batch itself: it may be made once more, because the table moved under it.
        recent = {number: one for number, one in self._recent(tally.at).items() if number != batch}
        for breach in breaches(self._contract, [*recent.values(), tally]):
            raise violation(self._table, self._contract, batch, tally, breach)
        self._tallies = {**recent, batch: tally}

    def _recent(self, now: float) -> dict[int, Tally]:
        if self._tallies is None:
            asks = self._recall is not None and self._window > 0
            self._tallies = dict(self._recall(now - self._window, self._known())) if asks and self._recall else {}
        return {number: one for number, one in self._tallies.items() if one.at > now - self._window}

    def _known(self) -> list[str]:
        stated = [one.reason for one in self._contract.violations(arrival="null")] if self._contract else []
        stated += [taken(field.name) for field in self._contract or () if field.unique]
        return list(dict.fromkeys([*stated, *self._fatal]))


@dataclass(frozen=True, slots=True)
class RefusedSince:
    """What was refused before a run began. `store` gives the table that carries positions."""

    lake: Lake
    dead: DeadLetters
    store: Callable[[], TableStore]

    def recall(self, moment: float, reasons: Sequence[str]) -> Mapping[int, Tally]:
        letters = self.lake.whole(self.dead.name) if self.dead.exists() else None
        return published_since(self.store(), letters, moment, reasons)


def published_since(
    history: History, letters: DataFrame | None, moment: float, reasons: Sequence[str]
) -> dict[int, Tally]:
    """What the table's own history says of its batches since a moment, and what their dead letters do."""
    found: dict[int, Tally] = {}
    for snapshot in history.ancestors(history.head()):
        stamp, at = snapshot.stamp, snapshot.timestamp_ms / 1000
        if at < moment:
            break
        if stamp is not None and not stamp.guest:
            found[stamp.batch] = Tally(at, stamp.rows.get("in", 0), stamp.rows.get("dead", 0))
    for number, tally in found.items():
        if tally.refused and letters is not None:
            own = letters.where((col("batch") == number) & (col("state") == "open"))
            told = _counted(own, reasons, "reasons")
            found[number] = Tally(tally.at, tally.rows, tally.refused, told)
    return dict(sorted(found.items()))


def _counted(rows: DataFrame, known: Sequence[str], column: str) -> dict[str, int]:
    """Rows per reason; the offending value that is shown behind a reason does not make it another one."""
    counted = [count_if(exists(col(column), _says(reason))).alias(str(number)) for number, reason in enumerate(known)]
    found = rows.agg(*counted).collect()[0]
    return {reason: int(found[str(number)]) for number, reason in enumerate(known) if found[str(number)]}


def _limits(contract: Contract) -> bool:
    return contract.limit is not None or any(rule.threshold or rule.action == "fail" for rule in contract.rules)


def _says(reason: str) -> Callable[[Column], Column]:
    # Not whatever begins like it: "rule: paid" is another reason than "rule: paid in time".
    return lambda text: (text == reason) | text.startswith(lit(f"{reason}: "))
