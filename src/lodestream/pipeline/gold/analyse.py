"""Choose how a Gold table follows its inputs: delta, affected keys or full refresh, and say why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from lodestream.errors import DeclarationError
from lodestream.pipeline.gold.affected import affected_plan
from lodestream.pipeline.gold.delta import delta_plan
from lodestream.pipeline.gold.plan import GoldPlan, InputInfo, NotProvableError, Strategy
from lodestream.pipeline.gold.query import Query, read_query
from lodestream.pipeline.gold.statement import Statement, read_statement

_PROOFS: dict[Strategy, Callable[[Query], GoldPlan]] = {"delta": delta_plan, "affected": affected_plan}


def analyse(
    sql: str, inputs: Mapping[str, InputInfo] | Iterable[InputInfo], *, force: Strategy | None = None
) -> GoldPlan:
    """The cheapest strategy that is provably equal to a batch recompute, or the forced one if it is provable."""
    infos = inputs if isinstance(inputs, Mapping) else {info.name: info for info in inputs}
    statement = read_statement(sql, infos)
    if force == "full":
        return _full(statement, ["it was asked for"], None)
    refusals: dict[Strategy, NotProvableError] = {}
    try:
        query = read_query(statement)
    except NotProvableError as refusal:
        if force:
            raise _refused(force, refusal) from refusal
        return _full(statement, [refusal.reason], refusal.cheaper)
    for strategy, proof in _PROOFS.items():
        if force in (None, strategy):
            try:
                return _explained(proof(query), refusals)
            except NotProvableError as refusal:
                refusals[strategy] = refusal
    if force:
        raise _refused(force, refusals[force])
    return _neither(statement, refusals["delta"], refusals["affected"])


def _explained(plan: GoldPlan, refusals: Mapping[Strategy, NotProvableError]) -> GoldPlan:
    """A slower plan says why the faster one did not fit, and what would make it fit."""
    if "delta" not in refusals:
        return plan
    first = refusals["delta"]
    return replace(plan, reason=f"{plan.reason}; not by delta, because {first.reason}", cheaper=first.cheaper)


def _neither(statement: Statement, delta: NotProvableError, affected: NotProvableError) -> GoldPlan:
    reasons = [f"a delta is not provable ({delta.reason})", f"nor are affected keys ({affected.reason})"]
    return _full(statement, reasons, affected.cheaper or delta.cheaper)


def _refused(strategy: Strategy, refusal: NotProvableError) -> DeclarationError:
    return DeclarationError(
        f"strategy {strategy!r} was asked for, but it cannot be proven to equal a recompute",
        why=refusal.reason,
        fix=refusal.cheaper or "leave the strategy to Lodestream",
    )


def _full(statement: Statement, reasons: list[str], cheaper: str | None) -> GoldPlan:
    return GoldPlan(
        strategy="full",
        reason=f"recomputed as a whole, because {', '.join(reasons)}",
        cheaper=cheaper,
        inputs=statement.inputs,
        columns=tuple(str(name) for name in statement.tree.named_selects) if statement.tree is not None else (),
        full_sql=statement.full_sql,
        on_lookup_change={name: "full" for name in statement.inputs if name not in statement.streams},
    )
