"""The error of a batch that breaks its contract, in the words an operator needs."""

from __future__ import annotations

from collections.abc import Mapping

from lodestream.contracts.model import Contract
from lodestream.contracts.thresholds import Breach, Tally
from lodestream.errors import ContractViolation

_MOST = 3


def violation(table: str, contract: Contract, batch: int, tally: Tally, breach: Breach) -> ContractViolation:
    """The error for one exceeded limit."""
    reasons = tally.reasons if breach.subject is None else {breach.subject: breach.broken}
    over = f" over {str(breach.threshold).split(' over ')[1]}" if breach.threshold.window else f" in batch {batch}"
    return ContractViolation(
        f"{table} refused {breach.broken:,} of {breach.rows:,} rows{over}"
        f" ({_share(breach.percent)} %, limit {_share(breach.threshold.percent)} %)",
        why=_why(reasons, contract),
        fix=f"lode dead show {table} --batch {batch}, then lode dead replay {table}",
        table=table,
        batch=batch,
        rows=breach.rows,
        refused=breach.broken,
        reasons=dict(reasons),
    )


def unexpected(table: str, batch: int, rows: int, reason: str, broken: int) -> ContractViolation:
    """The error for rows that break an expectation of the table itself, declared with `fail`."""
    return ContractViolation(
        f"{table} refused {broken:,} of {rows:,} rows in batch {batch} ({_share(100 * broken / rows)} %, limit 0 %)",
        why=f"{_said(reason, broken)}; the table expects it, with fail",
        fix=f"lode dead show {table} --batch {batch}, then correct the events or the expectation",
        table=table,
        batch=batch,
        rows=rows,
        refused=broken,
        reasons={reason: broken},
    )


def unloadable(
    table: str,
    contract: Contract | None,
    file: str,
    rows: int,
    refused: int,
    reasons: Mapping[str, int],
    where: Mapping[str, str],
) -> ContractViolation:
    """The error for a reference file that breaks its contract, or has two rows for one key.

    `where` says for a reason on which line of the file it is met.
    """
    said = ", ".join(_said(reason, count, where.get(reason)) for reason, count in reasons.items())
    return ContractViolation(
        f"{table} refused {refused:,} of {rows:,} rows of {file}",
        why=_why(reasons, contract, where) if contract else f"{said}; the table declares it",
        fix=f"correct {file}; readers still see the rows before, and the next good version is taken by itself",
        table=table,
        rows=rows,
        refused=refused,
        reasons=dict(reasons),
    )


def _share(percent: float) -> str:
    """Whole percents, except where that would say 0 or hide that a limit was passed."""
    if percent >= 10 or percent == int(percent):
        return f"{percent:.0f}"
    return f"{percent:.2g}"


def _why(reasons: Mapping[str, int], contract: Contract, where: Mapping[str, str] | None = None) -> str:
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    said = [_said(reason, count, (where or {}).get(reason)) for reason, count in ordered[:_MOST]]
    more = f" and {len(ordered) - _MOST} more" if len(ordered) > _MOST else ""
    verb = "requires it" if len(ordered) == 1 else "requires otherwise"
    return f"{', '.join(said)}{more}; contract {contract.title} {verb}"


def _said(reason: str, count: int, where: str | None = None) -> str:
    rows = f"{count:,} row{'' if count == 1 else 's'}{f' ({where})' if where else ''}"
    if reason.startswith(("rule: ", "expect: ")):
        return f"{reason.partition(': ')[2]!r} does not hold in {rows}"
    return f"{rows} came too late" if reason == "late" else f"{reason} in {rows}"
