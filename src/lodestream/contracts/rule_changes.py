"""How the rules of two versions differ. What is provable from the expressions is said; the rest counts as both."""

from __future__ import annotations

from collections.abc import Iterator

import sqlglot
from sqlglot import exp

from lodestream.contracts.limit_changes import Tuned
from lodestream.contracts.model import Contract, Rule

_STRICT = {"warn": 0, "quarantine": 1, "fail": 2}


def compare_rules(old: Contract, new: Contract) -> Iterator[Tuned]:
    before = {rule.name: rule for rule in old.rules}
    for rule in new.rules:
        if rule.name in before:
            yield from _rule(before.pop(rule.name), rule)
        else:
            keeps_out = rule.action != "warn"
            yield "rule", f"rule {rule.name} added ({rule.action}): {rule.expression}", keeps_out, False
    for rule in before.values():
        yield "rule", f"rule {rule.name} removed: {rule.expression}", False, rule.action != "warn"


def _rule(old: Rule, new: Rule) -> Iterator[Tuned]:
    if old.action != new.action:
        stricter = _STRICT[new.action] > _STRICT[old.action]
        # Between quarantine and fail the same rows are kept out: only what happens to the flow differs.
        matters = "warn" in (old.action, new.action)
        what = f"rule {new.name} changed from {old.action} to {new.action}"
        yield "rule", what, stricter and matters, not stricter and matters
    if old.threshold != new.threshold:
        before, after = (str(limit) if limit else "none" for limit in (old.threshold, new.threshold))
        yield "rule", f"rule {new.name}: limit changed from {before} to {after}", False, False
    if _conjuncts(old.expression) != _conjuncts(new.expression):
        tightened, loosened = _compare(old.expression, new.expression)
        word = "changed" if tightened and loosened else "tightened" if tightened else "loosened"
        matters = new.action != "warn"
        what = f"rule {new.name} {word}: was {old.expression}, is {new.expression}"
        yield "rule", what, tightened and matters, loosened and matters


def _compare(old: str, new: str) -> tuple[bool, bool]:
    """More conditions joined by AND are tighter; a single bound is compared by its number."""
    before, after = _conjuncts(old), _conjuncts(new)
    if before < after:
        return True, False
    if after < before:
        return False, True
    return _bounds(old, new) or (True, True)


def _conjuncts(expression: str) -> frozenset[str]:
    tree = sqlglot.parse_one(expression, dialect="spark").unnest()
    parts = tree.flatten() if isinstance(tree, exp.And) else [tree]
    return frozenset(_spelt(part.unnest()) for part in parts)


def _spelt(condition: exp.Expr) -> str:
    """One spelling for all that Spark takes for the same: names in any case. Text in quotes means what it says."""
    lowered = condition.copy()
    for name in lowered.find_all(exp.Identifier):
        name.set("this", name.this.lower())
        name.set("quoted", False)
    return lowered.sql(dialect="spark", comments=False)


def _bounds(old: str, new: str) -> tuple[bool, bool] | None:
    before, after = _bound(old), _bound(new)
    if before is None or after is None or before[:2] != after[:2]:
        return None
    rises = after[2] > before[2]
    lower = before[1] in ("GT", "GTE")
    return (rises, not rises) if lower else (not rises, rises)


def _bound(expression: str) -> tuple[str, str, float] | None:
    tree = sqlglot.parse_one(expression, dialect="spark").unnest()
    if not isinstance(tree, exp.GT | exp.GTE | exp.LT | exp.LTE) or not isinstance(tree.left, exp.Column):
        return None
    try:
        return tree.left.sql(dialect="spark").lower(), type(tree).__name__, float(tree.right.sql(dialect="spark"))
    except ValueError:
        return None
