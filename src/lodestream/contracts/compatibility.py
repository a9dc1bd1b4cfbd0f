"""What changed between two versions of a contract, and whom it breaks.

Backward: the new contract holds for rows written under the old one. Forward: rows written under the new contract
are still what readers of the old one were promised. Full: both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from lodestream.contracts.limit_changes import compare_limits
from lodestream.contracts.model import Contract, Field, duration_text
from lodestream.contracts.reading_changes import bent_values, taken_values
from lodestream.contracts.rule_changes import compare_rules
from lodestream.contracts.types import parse_type
from lodestream.contracts.widening import element, members, relation

Mode = Literal["backward", "forward", "full"]
Severity = Literal["safe", "careful", "breaking"]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `careful` changes only which values may come; `breaking` changes what readers rely on."""

    path: str
    kind: str
    what: str
    backward: bool = True
    forward: bool = True
    severity: Severity = "safe"
    fix: str | None = None

    def breaks(self, mode: Mode) -> bool:
        return (mode != "forward" and not self.backward) or (mode != "backward" and not self.forward)

    def __str__(self) -> str:
        return f"{self.path}: {self.what}" + (f"\n  fix: {self.fix}" if self.fix else "")


def changes(old: Contract, new: Contract) -> tuple[Change, ...]:
    """Every difference that a writer or a reader can notice, in the order of the new contract."""
    found = [
        *_fields("", old.fields, new.fields),
        *_keys(old, new),
        *_time(old, new),
        *(_tuned("rules", *tuned) for tuned in compare_rules(old, new)),
    ]
    return tuple(found)


def incompatible(old: Contract, new: Contract, mode: Mode) -> tuple[Change, ...]:
    """The changes that break the promise; an empty result says that the versions are compatible."""
    return tuple(change for change in changes(old, new) if change.breaks(mode))


def breaking(old: Contract, new: Contract) -> tuple[Change, ...]:
    """The changes that a table with consumers must not make in one step."""
    return tuple(change for change in changes(old, new) if change.severity == "breaking")


def next_version(old: Contract, new: Contract) -> str:
    """The least version the new contract may have, by semantic versioning."""
    major, minor, patch = (int(part) if part.isdigit() else 0 for part in [*old.version.split("."), "0", "0"][:3])
    found = changes(old, new)
    if any(change.severity == "breaking" for change in found):
        return f"{major + 1}.0.0"
    return f"{major}.{minor + 1}.0" if found else f"{major}.{minor}.{patch}"


def _fields(prefix: str, old: tuple[Field, ...], new: tuple[Field, ...]) -> Iterator[Change]:
    before = {field.name: field for field in old}
    for field in new:
        path = prefix + field.name
        if field.name in before:
            yield from _field(path, before.pop(field.name), field)
            continue
        alias = next((name for name in field.aliases if name in before and name not in {f.name for f in new}), None)
        if alias is not None:
            yield _renamed(prefix + alias, field)
            yield from _field(path, before.pop(alias), field)
        else:
            yield _added(path, field)
    yield from (_removed(prefix + name) for name in before)


def _added(path: str, field: Field) -> Change:
    if not field.required:
        return Change(path, "added", f"added as an optional {field.type}")
    fix = "add it as optional, fill it in for the rows that are there, and require it in the version after"
    return Change(path, "added", f"added as a required {field.type}, which rows already written do not have",
                  backward=False, severity="breaking", fix=fix)  # fmt: skip


def _removed(path: str) -> Change:
    fix = "keep it in this version, move its readers away, and remove it in the version after"
    return Change(
        path, "removed", "removed, and queries that name it fail", forward=False, severity="breaking", fix=fix
    )


def _renamed(path: str, field: Field) -> Change:
    fix = f"add {field.name} beside it, fill both, move the readers, and remove the old name in the version after"
    return Change(path, "renamed", f"renamed to {field.name}; rows are read by the alias, queries by the old name fail",
                  forward=False, severity="breaking", fix=fix)  # fmt: skip


def _field(path: str, old: Field, new: Field) -> Iterator[Change]:
    yield from _type(path, old, new)
    yield from _required(path, old, new)
    if old.unique != new.unique:
        yield _promise(path, "unique", tightened=new.unique, what="unique", old="not unique", severity="breaking")
    yield from (_tuned(path, *tuned) for tuned in compare_limits(old.limits, new.limits))
    yield from _meaning(path, old, new)


def _type(path: str, old: Field, new: Field) -> Iterator[Change]:
    before, after = parse_type(old.type), parse_type(new.type)
    if before.name == after.name == "struct":
        yield from _fields(f"{path}.", members(old), members(new))
    elif before.name == after.name == "array" or (before.name == after.name == "map" and before.key == after.key):
        inner, outer = element(old), element(new)
        if inner and outer:
            yield from _field(f"{path}[]", inner, outer)
    else:
        yield from _plain_type(path, old, new)


def _plain_type(path: str, old: Field, new: Field) -> Iterator[Change]:
    span = f"from {old.type} to {new.type}"
    beside = f"add a second column of type {new.type}, fill both, move the readers, then remove {path}"
    match relation(parse_type(old.type), parse_type(new.type)):
        case "widened":
            what = f"widened {span}; values may come that do not fit the old type"
            yield Change(path, "widened", what, forward=False, severity="careful")
        case "narrowed":
            what = f"narrowed {span}; values already written may not fit"
            yield Change(path, "narrowed", what, backward=False, severity="breaking", fix=beside)
        case "changed":
            yield Change(path, "type", f"changed {span}", False, False, "breaking", beside)


def _required(path: str, old: Field, new: Field) -> Iterator[Change]:
    if old.required and not new.required:
        fix = "tell the readers to expect nulls first, or give the field a value in the Silver function"
        what = "no longer required, and readers that count on a value find null"
        yield Change(path, "relaxed", what, forward=False, severity="breaking", fix=fix)
    if new.required and not old.required:
        fix = "fill the nulls of the rows that are there, check that none come, then require it"
        what = "now required, and rows already written may have null"
        yield Change(path, "required", what, backward=False, severity="breaking", fix=fix)


def _promise(path: str, kind: str, *, tightened: bool, what: str, old: str, severity: Severity) -> Change:
    said = f"now {what}, was {old}" if tightened else f"now {old}, was {what}"
    return Change(path, kind, said, backward=not tightened, forward=tightened, severity=severity,
                  fix="publish a second table under the new promise and move the readers")  # fmt: skip


def _meaning(path: str, old: Field, new: Field) -> Iterator[Change]:
    """Changes of what equal bytes mean, or of how values are shown."""
    for kind, what in bent_values(old, new):
        fix = "add a second column that is read the new way"
        yield Change(path, kind, what, False, False, "breaking", fix)
    yield from (_tuned(path, *tuned) for tuned in taken_values(old, new))
    if old.masking != new.masking:
        before, after = (str(masking) if masking else "not masked" for masking in (old.masking, new.masking))
        yield Change(path, "masking", f"masking changed from {before} to {after}", False, False, "breaking",
                     "add a second column with the new masking, move the readers, then remove this one")  # fmt: skip
    if old.classification != new.classification:
        what = f"classification changed from {old.classification} to {new.classification}"
        yield Change(path, "classification", what)


def _keys(old: Contract, new: Contract) -> Iterator[Change]:
    if old.keys != new.keys:
        before, after = (", ".join(keys) or "none" for keys in (old.keys, new.keys))
        yield Change("keys", "key", f"the key changed from {before} to {after}, so other rows are one", False, False,
                     "breaking", "publish a second table under the new key and move the readers")  # fmt: skip


def _time(old: Contract, new: Contract) -> Iterator[Change]:
    if old.event_time != new.event_time:
        what = f"the event time changed from {old.event_time} to {new.event_time}"
        yield Change("event time", "event time", what, old.event_time is None, old.event_time is None,
                     "breaking" if old.event_time else "careful")  # fmt: skip
    if old.lateness != new.lateness:
        tighter = old.lateness is None or (new.lateness is not None and new.lateness < old.lateness)
        before, after = (duration_text(late) if late is not None else "any" for late in (old.lateness, new.lateness))
        yield _tuned("lateness", "lateness", f"allowed lateness changed from {before} to {after}", tighter, not tighter)
    if old.freshness != new.freshness:
        worse = new.freshness is None or (old.freshness is not None and new.freshness > old.freshness)
        before, after = (duration_text(age) if age is not None else "none" for age in (old.freshness, new.freshness))
        yield _tuned("freshness", "freshness", f"the objective changed from {before} to {after}", False, worse)


def _tuned(path: str, kind: str, what: str, tightened: bool, loosened: bool) -> Change:
    severity: Severity = "careful" if tightened or loosened else "safe"
    return Change(path, kind, what, backward=not tightened, forward=not loosened, severity=severity)
