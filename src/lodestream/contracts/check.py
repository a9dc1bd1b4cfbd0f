"""What must hold for a contract besides its spelling, whichever form it was written in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from zoneinfo import ZoneInfo

from lodestream.contracts.document import Problem, nearest, refuse
from lodestream.contracts.expressions import problem_of
from lodestream.contracts.limits import DECLARED, Limits
from lodestream.contracts.model import Contract, Field, Rule
from lodestream.contracts.types import TEMPORAL, Type, parse_type
from lodestream.names import RESERVED, reserved


def check(contract: Contract) -> list[Problem]:
    """Every problem of a contract; an empty list says that it can be enforced."""
    found = [*_names(contract), *_references(contract)]
    found += [problem for field in contract.fields for problem in _field(field)]
    found += [problem for rule in contract.rules for problem in _rule(rule, contract)]
    return found


def valid(contract: Contract, subject: str) -> Contract:
    """The contract itself, or a ContractError with all that is wrong."""
    problems = check(contract)
    if problems:
        raise refuse(problems, subject)
    return contract


def _names(contract: Contract) -> Iterator[Problem]:
    if not contract.fields:
        yield Problem("the contract has no fields", fix="name at least one column")
    seen: Counter[str] = Counter()
    for field in contract.fields:
        seen[field.name.lower()] += 1
        if seen[field.name.lower()] == 2:
            # Spark compares names without case: the second column could never be written.
            yield Problem(f"the field {field.name} is there twice", field.line, "names differ in more than case")
    for name, count in Counter(rule.name for rule in contract.rules).items():
        if count > 1:
            line = [rule.line for rule in contract.rules if rule.name == name][1]
            yield Problem(
                f"two rules are named {name}", line, "the name is the reason in the dead letters: keep them apart"
            )


def _references(contract: Contract) -> Iterator[Problem]:
    known = [field.name for field in contract.fields]
    for key in contract.keys:
        if key not in known:
            yield Problem(f"the key {key} is no field", fix=nearest(key, known))
        elif parse_type(contract[key].type).nested:
            yield Problem(f"the key {key} is a {contract[key].type}", contract[key].line, "a key is a plain value")
        elif _blurred(contract[key]):
            what = f"masking {contract[key].masking} makes different values equal, {key} is the key"
            yield Problem(what, contract[key].line, "use hash, or another key")
    if contract.event_time is None:
        if contract.lateness is not None:
            yield Problem("lateness needs an event time", fix="set lode.eventTime to a timestamp field")
    elif contract.event_time not in known:
        yield Problem(f"the event time {contract.event_time} is no field", fix=nearest(contract.event_time, known))
    elif parse_type(contract[contract.event_time].type).name not in TEMPORAL:
        field = contract[contract.event_time]
        yield Problem(f"the event time {field.name} is a {field.type}", field.line, "it must be a timestamp or a date")


def _blurred(field: Field) -> bool:
    """Whether what is stored no longer tells two values apart."""
    return field.masking is not None and field.masking.method != "hash"


def _field(field: Field, path: str = "") -> Iterator[Problem]:
    name = path + field.name
    if not field.name or field.name != field.name.strip() or re.search(r"[\x00-\x1f]", field.name):
        yield Problem(f"{name!r} cannot be a column name", field.line, "a name is printable and not empty")
    if "${" in field.name:
        yield Problem(f"{name} cannot be a column name", field.line, "Spark replaces ${...} in every statement")
    if reserved(field.name):
        yield Problem(f"the name {name} is reserved", field.line, RESERVED)
    try:
        kind = parse_type(field.type)
    except ValueError as wrong:
        yield Problem(f"{name}: {wrong}", field.line)
        return
    yield from (Problem(f"{name}: {what}", field.line, fix) for what, fix in _options(field, kind))
    for inner in (*field.fields, *([field.items] if field.items else [])):
        if inner.unique:
            yield Problem(f"{name}.{inner.name}: unique inside {name}", inner.line, "only a column can be unique")
        yield from _field(inner, f"{name}.")


def _options(field: Field, kind: Type) -> Iterator[tuple[str, str | None]]:
    reading = field.reading
    if reading.rounding and kind.name != "decimal":
        yield "rounding is for decimals", "remove lode.rounding"
    if (reading.epoch or reading.format) and kind.name not in TEMPORAL:
        yield "epoch and format are for dates and timestamps", "remove them"
    if reading.zone and not _is_zone(reading.zone):
        yield f"{reading.zone} is not a time zone", "write a name such as UTC or Europe/Paris"
    if field.masking and field.masking.method != "redact" and kind.name != "string":
        yield f"masking {field.masking} gives text, the field is a {field.type}", "use redact, or the type string"
    if field.masking and field.masking.method == "redact" and field.required and kind.name != "string":
        yield "a redacted value that is not text becomes null, the field is required", "make it optional"
    if field.unique and kind.nested:
        yield f"unique on a {field.type}", "only a plain value can be unique"
    if field.unique and _blurred(field):
        yield f"masking {field.masking} makes different values equal, the field is unique", "use hash"
    if field.fields and kind.name != "struct":
        yield f"has fields but is a {field.type}", "use the type struct"
    # Two bounds may have the same fault: it is said once.
    yield from dict.fromkeys(_unfit(field.limits, kind))


def _unfit(limits: Limits, kind: Type) -> Iterator[tuple[str, str | None]]:
    for one in DECLARED.values():
        stated = one.stated(limits)
        if one.unfit and stated is not None:
            yield from one.unfit(stated, kind)


def _is_zone(name: str) -> bool:
    try:
        return bool(ZoneInfo(name))
    except (ValueError, OSError, KeyError):
        return bool(re.fullmatch(r"[+-]\d\d:\d\d", name))


def _rule(rule: Rule, contract: Contract) -> Iterator[Problem]:
    known = [field.name for field in contract.fields]
    if rule.column is not None and rule.column not in known:
        yield Problem(
            f"rule {rule.name} sits on {rule.column}, which is no field", rule.line, nearest(rule.column, known)
        )
    wrong = problem_of(rule.expression, known)
    if wrong:
        yield Problem(f"rule {rule.name}: {wrong.what}", rule.line, wrong.fix)
