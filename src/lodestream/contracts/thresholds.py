"""When too many rows break a contract: counted per batch, judged over the time each limit names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lodestream.contracts.model import Contract, Threshold

ANY_ROW = Threshold(0.0)


@dataclass(frozen=True, slots=True)
class Tally:
    """One batch: when (epoch seconds), how many rows came, how many were refused, and broken rows per reason."""

    at: float
    rows: int
    refused: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Breach:
    """A limit that was exceeded; `subject` is a reason, or None for the refused rows of the whole contract."""

    subject: str | None
    threshold: Threshold
    rows: int
    broken: int

    @property
    def percent(self) -> float:
        return 100 * self.broken / self.rows


def breaches(contract: Contract, tallies: Sequence[Tally]) -> tuple[Breach, ...]:
    """The limits that the newest batch exceeds; older tallies count where a limit names a time."""
    if not tallies:
        return ()
    return tuple(
        found for found in _judged(contract, tallies) if found.rows and found.percent > found.threshold.percent
    )


def longest_window(contract: Contract) -> float:
    """How far back tallies are needed, in seconds."""
    limits = [rule.threshold for rule in contract.rules] + [contract.limit]
    return max((limit.window or 0.0 for limit in limits if limit), default=0.0)


def _judged(contract: Contract, tallies: Sequence[Tally]) -> Iterator[Breach]:
    if contract.limit is not None:
        counted = _within(tallies, contract.limit)
        yield Breach(None, contract.limit, sum(t.rows for t in counted), sum(t.refused for t in counted))
    for rule in contract.rules:
        limit = rule.threshold or (ANY_ROW if rule.action == "fail" else None)
        if limit is None or rule.action == "warn":
            continue
        reason = f"rule: {rule.name}"
        counted = _within(tallies, limit)
        yield Breach(reason, limit, sum(t.rows for t in counted), sum(t.reasons.get(reason, 0) for t in counted))


def _within(tallies: Sequence[Tally], limit: Threshold) -> Sequence[Tally]:
    newest = tallies[-1]
    if limit.window is None:
        return (newest,)
    return [tally for tally in tallies if tally.at > newest.at - limit.window]
