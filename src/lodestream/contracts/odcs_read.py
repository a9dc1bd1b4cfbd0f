"""Read an Open Data Contract Standard file. Every problem is found before any is reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from lodestream.config.duration import parse_duration
from lodestream.contracts import odcs_terms as terms
from lodestream.contracts.check import check
from lodestream.contracts.document import Entry, Problem, nearest, parse_document, read_document, refuse
from lodestream.contracts.model import Contract, Threshold
from lodestream.contracts.odcs_fields import Found, read_custom, read_properties
from lodestream.contracts.odcs_rules import Quality, read_quality

_MODELLED = ("kind", "id", "name", "version", "status", "description", "schema", "team", "slaProperties")
_OBJECT_MODELLED = ("name", "properties", "quality", "customProperties", "logicalType")
_FRESHNESS = ("freshness", "latency", "ly")


def load_contract(path: Path | str, dataset: str | None = None) -> Contract:
    """The contract in a file; `dataset` chooses among several schema objects. Raises ContractError."""
    file = Path(path)
    return _read(read_document(file, str(path)), dataset, str(path), file)


def parse_contract(text: str, dataset: str | None = None, *, subject: str = "contract") -> Contract:
    """The contract in a YAML text; `subject` stands in messages where the file name would."""
    return _read(text, dataset, subject, None)


@lru_cache(maxsize=256)  # one plan asks for each contract a dozen times
def _read(text: str, dataset: str | None, subject: str, file: Path | None) -> Contract:
    contract, problems = _parsed(text, dataset)
    return _finish(replace(contract, file=file) if contract is not None else None, list(problems), subject)


@lru_cache(maxsize=256)
def _parsed(text: str, dataset: str | None) -> tuple[Contract | None, tuple[Problem, ...]]:
    problems: list[Problem] = []
    root = parse_document(text, problems)
    return _contract(root, dataset) if root else None, tuple(problems)


def _finish(contract: Contract | None, problems: list[Problem], subject: str) -> Contract:
    if contract is not None and not problems:
        problems += check(contract)
    if contract is None or problems:
        raise refuse(problems, subject)
    return contract


def _contract(root: Entry, dataset: str | None) -> Contract | None:
    entries = root.entries("the contract", terms.ROOT)
    if not entries:
        return None
    _heading(root, entries)
    chosen = _choose(root, entries, dataset)
    if chosen is None:
        return None
    entry, parts = chosen
    object_name = parts["name"].text("name of the schema object")
    found = read_properties(parts["properties"], object_name) if "properties" in parts else Found()
    if not found.fields:
        entry.wrong(f"{object_name} has no properties", "list its columns under properties:")
    quality = _quality(parts, object_name)
    own, others = _custom(parts, object_name)
    purpose, description = _description(entries)
    owner, team = _team(entries)
    freshness, sla = _freshness(entries)
    extras = {key: value.plain() for key, value in entries.items() if key not in _MODELLED}
    sections = {
        "description": description,
        "team": team,
        "slaProperties": sla,
        "schema": _object_extras(parts, quality, others),
    }
    if extras.pop("apiVersion", None) != terms.API_VERSION and "apiVersion" in entries:
        extras["apiVersion"] = entries["apiVersion"].plain()
    return Contract(
        name=entries["name"].text("name") if "name" in entries else object_name,
        version=entries["version"].text("version") if "version" in entries else "",
        fields=tuple(found.fields),
        id=entries["id"].text("id") if "id" in entries else "",
        dataset=object_name,
        status=entries["status"].text("status") if "status" in entries else "",
        owner=owner,
        description=purpose,
        rules=(*quality.rules, *found.rules),
        keys=tuple(name for _, name in sorted(found.keys, key=lambda key: key[0])),
        event_time=_event_time(own.get("lode.eventTime"), [field.name for field in found.fields]),
        lateness=_duration(own.get("lode.lateness"), "lode.lateness"),
        freshness=freshness,
        limit=_limit(own.get("lode.limit")),
        extras=extras | {key: value for key, value in sections.items() if value},
    )


def _heading(root: Entry, entries: Mapping[str, Entry]) -> None:
    for key in ("apiVersion", "kind", "id", "version", "status"):
        if key not in entries:
            root.wrong(f"the contract has no {key}", _HEADING_EXAMPLES[key])
    if "kind" in entries:
        entries["kind"].choice("kind", ("DataContract",))
    if "apiVersion" in entries:
        entries["apiVersion"].choice("apiVersion", terms.API_VERSIONS)


_HEADING_EXAMPLES = {
    "apiVersion": f"write apiVersion: {terms.API_VERSION}",
    "kind": "write kind: DataContract",
    "id": "write id: followed by a name or UUID that never changes",
    "version": "write version: 1.0.0",
    "status": "write status: active",
}


def _choose(root: Entry, entries: Mapping[str, Entry], dataset: str | None) -> tuple[Entry, dict[str, Entry]] | None:
    """The one schema object that this contract is about."""
    if "schema" not in entries:
        root.wrong("the contract has no schema", "write schema: with one object and its properties")
        return None
    objects = [(entry, entry.entries("a schema object", terms.OBJECT)) for entry in entries["schema"].items("schema")]
    named = {parts["name"].plain(): (entry, parts) for entry, parts in objects if "name" in parts}
    if len(named) < len(objects) or not named:
        entries["schema"].wrong("each schema object needs a name of its own", "write - name: trips")
        return None
    if dataset is None and len(named) == 1:
        return next(iter(named.values()))
    if dataset is None:
        entries["schema"].wrong(
            f"the contract has {len(named)} schema objects", f"name one of {', '.join(map(str, named))}"
        )
        return None
    if dataset not in named:
        entries["schema"].wrong(
            f"the contract has no schema object {dataset}", nearest(dataset, [str(n) for n in named])
        )
        return None
    return named[dataset]


def _quality(parts: Mapping[str, Entry], what: str) -> Quality:
    return read_quality(parts["quality"], what, None) if "quality" in parts else Quality()


def _custom(parts: Mapping[str, Entry], what: str) -> tuple[dict[str, Entry], list[Any]]:
    if "customProperties" not in parts:
        return {}, []
    return read_custom(parts["customProperties"], what, terms.OBJECT_CUSTOM)


def _object_extras(parts: Mapping[str, Entry], quality: Quality, custom: list[Any]) -> dict[str, Any]:
    kept = {key: value.plain() for key, value in parts.items() if key not in _OBJECT_MODELLED}
    return kept | {key: value for key, value in (("quality", quality.others), ("customProperties", custom)) if value}


def _description(entries: Mapping[str, Entry]) -> tuple[str | None, dict[str, Any]]:
    if "description" not in entries:
        return None, {}
    parts = entries["description"].entries("description", terms.DESCRIPTION)
    purpose = parts["purpose"].text("purpose") if "purpose" in parts else None
    return purpose, {key: value.plain() for key, value in parts.items() if key != "purpose"}


def _team(entries: Mapping[str, Entry]) -> tuple[str | None, Any]:
    """The owner, and the team as written unless it is only the owner."""
    team = entries["team"].plain() if "team" in entries else None
    members = team.get("members") if isinstance(team, dict) else team
    for member in members if isinstance(members, list) else []:
        if isinstance(member, dict) and str(member.get("role", "")).lower() == "owner":
            owner = str(member.get("username") or member.get("name") or "") or None
            return owner, None if team == [{"username": owner, "role": "owner"}] else team
    return None, team


def _freshness(entries: Mapping[str, Entry]) -> tuple[float | None, list[Any]]:
    """The freshness objective: how old the newest row may be. The other agreements are kept as they are."""
    freshness: float | None = None
    others: list[Any] = []
    for entry in entries["slaProperties"].items("slaProperties") if "slaProperties" in entries else ():
        parts = entry.entries("slaProperties", terms.SLA)
        plain = entry.plain()
        ours = (
            isinstance(plain, dict)
            and plain.get("property") in _FRESHNESS
            and set(plain) <= {"property", "value", "unit"}
        )
        if ours and "value" in parts and freshness is None:
            freshness = _agreed(parts, plain)
        else:
            others.append(plain)
    return freshness, others


def _agreed(parts: Mapping[str, Entry], plain: Mapping[str, Any]) -> float | None:
    try:
        return parse_duration(f"{plain['value']} {plain.get('unit', '')}".strip())
    except ValueError as wrong:
        parts["value"].wrong(str(wrong), "write value: 5 and unit: s")
        return None


def _event_time(entry: Entry | None, known: Sequence[str]) -> str | None:
    if entry is None:
        return None
    name = entry.text("lode.eventTime")
    if name not in known:
        entry.wrong(f"the event time {name} is no field", nearest(name, known))
    return name


def _duration(entry: Entry | None, what: str) -> float | None:
    if entry is None:
        return None
    try:
        return parse_duration(entry.text(what))
    except ValueError as wrong:
        entry.wrong(f"{what}: {wrong}")
        return None


def _limit(entry: Entry | None) -> Threshold | None:
    if entry is None:
        return None
    try:
        return Threshold.parse(entry.text("lode.limit"))
    except ValueError as wrong:
        entry.wrong(f"lode.limit: {wrong}")
        return None
