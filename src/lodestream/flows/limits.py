"""Stop before publishing when more rows break the contract than it allows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, count_if, exists, lit

from lodestream.contracts import Contract
from lodestream.contracts.refusal import unexpected, violation
from lodestream.contracts.thresholds import Tally, breaches, longest_window
from lodestream.contracts.violations import taken
from lodestream.flows.judge import REASONS
from lodestream.pipeline import Expectation


class LimitWatch:
    """Remembers what the last batches refused, as far back as the contract's limits look."""

    def __init__(self, table: str, contract: Contract | None, expectations: Sequence[Expectation] = ()) -> None:
        self._table = table
        self._contract = contract
        self._window = longest_window(contract) if contract else 0.0
        self._fatal = [f"expect: {one.name}" for one in expectations if one.action == "fail"]
        self._limited = bool(self._fatal) or (contract is not None and _limits(contract))
        self._tallies: list[Tally] = []

    def check(self, judged: DataFrame, batch: int, rows: int, refused: int) -> None:
        """Raise `ContractViolation` for the first limit that this batch exceeds."""
        if not self._limited:
            return
        reasons = self._reasons(judged) if refused else {}
        tally = Tally(time.time(), rows, refused, reasons)
        for reason in filter(reasons.get, self._fatal):
            raise unexpected(self._table, batch, rows, reason, reasons[reason])
        if self._contract is None:
            return
        recent = [one for one in self._tallies if one.at > tally.at - self._window]
        for breach in breaches(self._contract, [*recent, tally]):
            raise violation(self._table, self._contract, batch, tally, breach)
        self._tallies = [*recent, tally]

    def _reasons(self, judged: DataFrame) -> dict[str, int]:
        """Rows per reason; the offending value that is shown behind a reason does not make it another one."""
        stated = [one.reason for one in self._contract.violations(arrival="null")] if self._contract else []
        stated += [taken(field.name) for field in self._contract or () if field.unique]
        known = list(dict.fromkeys([*stated, *self._fatal]))
        counted = [
            count_if(exists(col(REASONS), _says(reason))).alias(str(number)) for number, reason in enumerate(known)
        ]
        found = judged.agg(*counted).collect()[0]
        return {reason: int(found[str(number)]) for number, reason in enumerate(known) if found[str(number)]}


def _limits(contract: Contract) -> bool:
    return contract.limit is not None or any(rule.threshold or rule.action == "fail" for rule in contract.rules)


def _says(reason: str) -> Callable[[Column], Column]:
    return lambda text: text.startswith(lit(reason))
