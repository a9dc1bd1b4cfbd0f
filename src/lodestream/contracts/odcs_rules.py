"""ODCS quality checks: the ones we run become rules and value lists, the others are kept as they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from lodestream.contracts import odcs_terms as terms
from lodestream.contracts.document import Entry, nearest
from lodestream.contracts.model import Action, Rule, Threshold, parse_action

_MODELLED = ("name", "description", "type", "engine", "implementation")
_COUNT = re.compile(
    r"\s*select\s+count\(\s*[*1]\s*\)\s+from\s+\$?\{(?:object|table)\}\s+where\s+(.+?)\s*;?\s*", re.I | re.S
)


@dataclass(slots=True)
class Quality:
    """What the quality section of an object or a property holds."""

    rules: list[Rule] = field(default_factory=list)
    values: tuple[Any, ...] = ()
    others: list[Any] = field(default_factory=list)


def read_quality(listed: Entry, what: str, column: str | None) -> Quality:
    found = Quality()
    for number, entry in enumerate(listed.items(f"quality of {what}"), start=1):
        _read_check(entry, f"quality check {number} of {what}", column, found)
    return found


def _read_check(entry: Entry, what: str, column: str | None, found: Quality) -> None:
    entries = entry.entries(what, terms.QUALITY)
    plain = entry.plain()
    if not isinstance(plain, dict):
        return
    _meant_for_us(entry, plain, what)
    if plain.get("type") == "custom" and plain.get("engine") == terms.ENGINE:
        found.rules.append(_own_rule(entry, entries, plain, column, what))
    elif (condition := _counted(plain)) is not None:
        found.rules.append(_sql_rule(entry, plain, condition, column, what))
    elif column and (values := _listed(plain)) is not None:
        found.values = values
    else:
        found.others.append(plain)


def _meant_for_us(entry: Entry, plain: Mapping[str, Any], what: str) -> None:
    """Checks of other engines are theirs. A slip in our name would leave a rule unenforced, and nobody told."""
    engine = str(plain.get("engine", ""))
    if engine != terms.ENGINE and get_close_matches(engine.lower(), (terms.ENGINE,), cutoff=0.85):
        entry.wrong(f"engine of {what}: {engine} would not be enforced here", f"write engine: {terms.ENGINE}")


def _own_rule(
    entry: Entry, entries: Mapping[str, Entry], plain: Mapping[str, Any], column: str | None, what: str
) -> Rule:
    parts = _implementation(entries["implementation"], what) if "implementation" in entries else {}
    if "expression" not in parts:
        entry.wrong(f"{what} has no expression", "write implementation: {expression: fare_amount >= 0}")
    action, threshold = _action(parts, what)
    return Rule(
        name=_name(entry, plain, what),
        expression=parts["expression"].text(f"expression of {what}") if "expression" in parts else "true",
        action=action,
        threshold=threshold,
        description=plain.get("description"),
        column=column,
        extras={key: value for key, value in plain.items() if key not in _MODELLED},
        line=entry.line,
    )


def _implementation(entry: Entry, what: str) -> dict[str, Entry]:
    """Either the expression alone, or a mapping with action and threshold."""
    if isinstance(entry.plain(), str):
        return {"expression": entry}
    return entry.entries(f"implementation of {what}", terms.IMPLEMENTATION)


def _name(entry: Entry, plain: Mapping[str, Any], what: str) -> str:
    name = plain.get("name")
    if isinstance(name, str) and name.strip():
        return name
    entry.wrong(f"{what} has no name", "a rule's name is the reason in the dead letters: name: fare is not negative")
    return what


def _action(parts: Mapping[str, Entry], what: str) -> tuple[Action, Threshold | None]:
    """`action: fail above 5 %` says both; a `threshold` of its own is the longer way to say it."""
    limit = _threshold(parts, what)
    if "action" not in parts:
        return "quarantine", limit
    text = parts["action"].text(f"action of {what}")
    try:
        action, threshold = parse_action(text)
    except ValueError as wrong:
        meant = text.partition(" above ")[0]
        parts["action"].wrong(f"action of {what}: {wrong}", _nearest_action(meant))
        return "quarantine", limit
    return action, threshold or limit


def _nearest_action(meant: str) -> str:
    known = meant in terms.ACTIONS  # then it is the limit that is wrong
    return f'write {meant} above 5 %, or "{meant} above 5 % over 1 min"' if known else nearest(meant, terms.ACTIONS)


def _threshold(parts: Mapping[str, Entry], what: str) -> Threshold | None:
    if "threshold" not in parts:
        return None
    try:
        return Threshold.parse(parts["threshold"].text(f"threshold of {what}"))
    except ValueError as wrong:
        parts["threshold"].wrong(str(wrong))
        return None


def _counted(plain: Mapping[str, Any]) -> str | None:
    """The condition of `SELECT count(*) FROM {object} WHERE ...` with mustBe: 0, the standard's own row check."""
    query = plain.get("query")
    if plain.get("type") != "sql" or not isinstance(query, str) or plain.get("mustBe") != 0:
        return None
    match = _COUNT.fullmatch(query)
    return match[1] if match else None


def _sql_rule(entry: Entry, plain: Mapping[str, Any], condition: str, column: str | None, what: str) -> Rule:
    for placeholder in ("{property}", "{column}", "${column}", "${property}"):
        condition = condition.replace(placeholder, f"`{column}`" if column else placeholder)
    return Rule(
        name=_name(entry, plain, what),
        expression=f"NOT coalesce(({condition}), false)",
        description=plain.get("description"),
        column=column,
        extras={key: value for key, value in plain.items() if key not in (*_MODELLED, "query", "mustBe")},
        line=entry.line,
    )


def _listed(plain: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The value list of v3.0.2 (rule: validValues) or v3.1.0 (metric: invalidValues, mustBe: 0)."""
    arguments = plain.get("arguments")
    if plain.get("rule") == "validValues" and set(plain) <= {"type", "rule", "validValues"}:
        values = plain.get("validValues")
    elif plain.get("metric") == "invalidValues" and plain.get("mustBe") == 0 and isinstance(arguments, dict):
        values = arguments.get("validValues")
    else:
        return None
    return tuple(values) if isinstance(values, list) and values else None
