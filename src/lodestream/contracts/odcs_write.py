"""Write a contract as Open Data Contract Standard YAML, such that reading it gives an equal contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from lodestream.contracts import odcs_terms as terms
from lodestream.contracts.limits import limits_by_word
from lodestream.contracts.model import Contract, Field, Rule, duration_text
from lodestream.contracts.types import parse_type


def write_contract(contract: Contract, path: Path) -> None:
    path.write_text(contract_yaml(contract), encoding="utf-8")


def contract_yaml(contract: Contract) -> str:
    return yaml.dump(contract_document(contract), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def contract_document(contract: Contract) -> dict[str, Any]:
    """The contract as plain ODCS data, keys in the standard's order."""
    extras = dict(contract.extras)
    described = {"purpose": contract.description} if contract.description is not None else {}
    document = {
        "apiVersion": extras.pop("apiVersion", terms.API_VERSION),
        "kind": "DataContract",
        "id": contract.id,
        "name": contract.name,
        "version": contract.version,
        "status": contract.status,
        "description": described | extras.pop("description", {}),
        "team": _team(contract, extras.pop("team", None)),
        "slaProperties": [*_freshness(contract), *extras.pop("slaProperties", ())],
        "schema": [_object(contract, extras.pop("schema", {}))],
    }
    return {key: value for key, value in document.items() if value not in ({}, [], None)} | extras


def _team(contract: Contract, written: Any) -> Any:
    return written if written is not None or contract.owner is None else [{"username": contract.owner, "role": "owner"}]


def _freshness(contract: Contract) -> Iterator[dict[str, Any]]:
    if contract.freshness is not None:
        value, unit = duration_text(contract.freshness).split(" ")
        yield {"property": "freshness", "value": yaml.safe_load(value), "unit": unit}


def _object(contract: Contract, extras: dict[str, Any]) -> dict[str, Any]:
    own = {
        "lode.eventTime": contract.event_time,
        "lode.lateness": None if contract.lateness is None else duration_text(contract.lateness),
        "lode.limit": None if contract.limit is None else str(contract.limit),
    }
    quality = [_rule(rule) for rule in contract.rules if rule.column is None] + extras.get("quality", [])
    sections = {
        "customProperties": _custom(own) + extras.get("customProperties", []),
        "quality": quality,
        "properties": [_property(field, contract) for field in contract.fields],
    }
    rest = {key: value for key, value in extras.items() if key not in sections}
    return {"name": contract.dataset} | rest | {key: value for key, value in sections.items() if value}


def _property(field: Field, contract: Contract | None) -> dict[str, Any]:
    return {"name": field.name} | _body(field, contract)


def _body(field: Field, contract: Contract | None) -> dict[str, Any]:
    extras = dict(field.extras)
    sections = {
        "logicalTypeOptions": _options(field) | extras.pop("logicalTypeOptions", {}),
        "examples": list(field.examples),
        "quality": [*_quality(field, contract), *extras.pop("quality", ())],
        "customProperties": [*_custom(_own(field)), *extras.pop("customProperties", ())],
        "properties": [_property(inner, None) for inner in field.fields],
        "items": _body(field.items, None) if field.items else {},
    }
    return (
        {"logicalType": _logical(field, contract), "physicalType": field.type}
        | _key(field, contract)
        | _attributes(field)
        | extras
        | {key: value for key, value in sections.items() if value}
    )


def _logical(field: Field, contract: Contract | None) -> str:
    name = parse_type(field.type).name
    newer = contract is not None and contract.extras.get("apiVersion") == "v3.1.0"
    return "timestamp" if newer and name.startswith("timestamp") else terms.LOGICAL_OF[name]


def _key(field: Field, contract: Contract | None) -> dict[str, Any]:
    if contract is None or field.name not in contract.keys:
        return {}
    return {"primaryKey": True, "primaryKeyPosition": contract.keys.index(field.name) + 1}


def _attributes(field: Field) -> dict[str, Any]:
    found = {
        "required": field.required or None,
        "unique": field.unique or None,
        "classification": field.classification,
        "description": field.description,
    }
    return {key: value for key, value in found.items() if value is not None}


def _options(field: Field) -> dict[str, Any]:
    stated = ((word, one, getattr(field.limits, one.name)) for word, one in limits_by_word().items())
    found = {word: value for word, one, value in stated if value != one.default}
    return found | ({} if field.reading.format is None else {"format": field.reading.format})


def _own(field: Field) -> dict[str, Any]:
    reading = field.reading
    return {
        "lode.source": field.source,
        "lode.aliases": list(field.aliases) or None,
        "lode.masking": None if field.masking is None else str(field.masking),
        "lode.coerce": reading.coerce or None,
        "lode.rounding": reading.rounding,
        "lode.epoch": reading.epoch,
        "lode.zone": reading.zone,
        "lode.anyCase": reading.any_case or None,
        "lode.nonFinite": reading.non_finite or None,
    }


def _custom(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"property": key, "value": value} for key, value in found.items() if value is not None]


def _quality(field: Field, contract: Contract | None) -> Iterator[dict[str, Any]]:
    if field.limits.values:
        yield {"type": "library", "rule": "validValues", "validValues": list(field.limits.values)}
    for rule in contract.rules if contract else ():
        if rule.column == field.name:
            yield _rule(rule)


def _rule(rule: Rule) -> dict[str, Any]:
    implementation: dict[str, Any] = {"expression": rule.expression, "action": rule.action}
    if rule.threshold is not None:
        implementation["threshold"] = str(rule.threshold)
    described = {"description": rule.description} if rule.description is not None else {}
    head = {"name": rule.name} | described | {"type": "custom", "engine": terms.ENGINE}
    return head | {"implementation": implementation} | dict(rule.extras)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        """Equal values are written out: anchors would tie unrelated columns together in the file."""
        return True
