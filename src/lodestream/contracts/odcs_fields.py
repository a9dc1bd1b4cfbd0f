"""ODCS schema properties as fields."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lodestream.contracts import odcs_terms as terms
from lodestream.contracts import types
from lodestream.contracts.document import Entry, nearest
from lodestream.contracts.model import Field, Masking, Rule
from lodestream.contracts.odcs_options import read_options, read_reading
from lodestream.contracts.odcs_rules import Quality, read_quality

_MODELLED = (
    "name", "logicalType", "logicalTypeOptions", "physicalType", "description", "required", "unique",
    "primaryKey", "primaryKeyPosition", "classification", "examples", "quality", "properties", "items",
    "customProperties",
)  # fmt: skip


@dataclass(slots=True)
class Found:
    """What the properties of one object say besides their fields."""

    fields: list[Field] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    keys: list[tuple[int, str]] = field(default_factory=list)


def read_properties(listed: Entry, what: str) -> Found:
    found = Found()
    for entry in listed.items(f"properties of {what}"):
        _read_property(entry, found, nested=False)
    return found


def read_custom(listed: Entry, what: str, known: tuple[str, ...]) -> tuple[dict[str, Entry], list[Any]]:
    """Our own `lode.` properties, each with its entry, and the others as they are."""
    ours: dict[str, Entry] = {}
    others: list[Any] = []
    for entry in listed.items(f"customProperties of {what}"):
        parts = entry.entries(f"customProperties of {what}", terms.CUSTOM)
        name = parts["property"].plain() if "property" in parts else None
        if not isinstance(name, str) or not name.startswith("lode."):
            others.append(entry.plain())
        elif name not in known:
            parts["property"].wrong(f"unknown property {name} of {what}", nearest(name, known))
        elif "value" not in parts:
            entry.wrong(f"{name} of {what} has no value", "write value: beside property:")
        else:
            ours[name] = parts["value"]
    return ours, others


def _read_property(entry: Entry, found: Found, *, nested: bool, item_of: str | None = None) -> None:
    entries = entry.entries(f"a property of {item_of}" if item_of else "a property", terms.PROPERTY)
    if item_of:
        name = "element"
    elif "name" in entries:
        name = entries["name"].text("name of a property")
    else:
        entry.wrong("a property has no name", "write name: first")
        return
    what = f"property {item_of}[]" if item_of else f"property {name}"
    inner, item = _inside(entries, what)
    own, others = _custom(entries, what)
    quality = _quality(entries, what, name, nested)
    kind, options, implied = _type(entry, entries, what, inner, item)
    limits, reading, extras = read_options(entries, what, kind, options)
    longest = implied if limits.max_length is None else limits.max_length
    limits = replace(limits, values=quality.values, max_length=longest)
    found.fields.append(
        Field(
            name=name,
            type=str(kind),
            required="required" in entries and entries["required"].flag(f"required of {what}"),
            unique="unique" in entries and entries["unique"].flag(f"unique of {what}"),
            description=_text(entries, "description", what),
            source=own["lode.source"].text("lode.source") if "lode.source" in own else None,
            aliases=_names(own.get("lode.aliases")),
            classification=_text(entries, "classification", what),
            masking=_masking(own.get("lode.masking")),
            limits=limits,
            reading=read_reading(own, reading),
            examples=_examples(entries),
            fields=tuple(inner),
            items=item,
            extras=_kept(entries, others, quality, extras),
            line=entry.line,
        )
    )
    found.rules += quality.rules
    _key(entries, what, name, nested or item_of is not None, found)


def _inside(entries: Mapping[str, Entry], what: str) -> tuple[list[Field], Field | None]:
    inner = Found()
    if "properties" in entries:
        for entry in entries["properties"].items(f"properties of {what}"):
            _read_property(entry, inner, nested=True)
    item = Found()
    if "items" in entries:
        _read_property(entries["items"], item, nested=True, item_of=what.removeprefix("property "))
    return inner.fields, item.fields[0] if item.fields else None


def _custom(entries: Mapping[str, Entry], what: str) -> tuple[dict[str, Entry], list[Any]]:
    if "customProperties" not in entries:
        return {}, []
    return read_custom(entries["customProperties"], what, terms.PROPERTY_CUSTOM)


def _quality(entries: Mapping[str, Entry], what: str, name: str, nested: bool) -> Quality:
    if "quality" not in entries:
        return Quality()
    quality = read_quality(entries["quality"], what, name)
    if nested and quality.rules:
        entries["quality"].wrong(f"{what} is nested and cannot have rules", "put the rule on the table")
        quality.rules = []
    return quality


def _type(
    entry: Entry, entries: Mapping[str, Entry], what: str, inner: list[Field], item: Field | None
) -> tuple[types.Type, str, int | None]:
    """The Spark type, the logical type whose options apply, and the length that varchar(n) implies."""
    logical = (
        entries["logicalType"].choice(f"logicalType of {what}", terms.LOGICAL_TYPES)
        if "logicalType" in entries
        else None
    )
    if inner:
        return types.struct(tuple((f.name, types.parse_type(f.type)) for f in inner)), "object", None
    if item:
        return types.array(types.parse_type(item.type)), "array", None
    if "physicalType" in entries:
        kind = _physical(entries["physicalType"], what)
    elif logical:
        kind = types.parse_type(terms.SPARK_OF.get(logical, "string"))
    else:
        entry.wrong(f"{what} has no type", "write physicalType: decimal(10,2) or logicalType: string")
        kind = types.Type("string")
    if kind.name in ("varchar", "char"):
        return types.Type("string"), "string", kind.length
    return kind, logical or terms.LOGICAL_OF[kind.name], None


def _physical(entry: Entry, what: str) -> types.Type:
    text = entry.text(f"physicalType of {what}")
    try:
        return types.parse_type(text)
    except ValueError as wrong:
        close = difflib.get_close_matches(text.lower(), (*types.ATOMIC, "decimal(10,2)"), n=1)
        fix = f"did you mean {close[0]}?" if close else "name it as Spark does: string, bigint, array<string>, ..."
        entry.wrong(f"physicalType of {what}: {wrong}", fix)
        return types.Type("string")


def _masking(entry: Entry | None) -> Masking | None:
    if entry is None:
        return None
    try:
        return Masking.parse(entry.text("lode.masking"))
    except ValueError as wrong:
        entry.wrong(str(wrong))
        return None


def _names(entry: Entry | None) -> tuple[str, ...]:
    if entry is None:
        return ()
    value = entry.plain()
    if isinstance(value, str):
        return (value,)
    return tuple(one.text("lode.aliases") for one in entry.items("lode.aliases"))


def _text(entries: Mapping[str, Entry], key: str, what: str) -> str | None:
    return entries[key].text(f"{key} of {what}") if key in entries else None


def _examples(entries: Mapping[str, Entry]) -> tuple[Any, ...]:
    return tuple(entry.plain() for entry in entries["examples"].items("examples")) if "examples" in entries else ()


def _kept(
    entries: Mapping[str, Entry], custom: list[Any], quality: Quality, options: Mapping[str, Any]
) -> dict[str, Any]:
    kept = {key: value.plain() for key, value in entries.items() if key not in _MODELLED}
    sections = {"customProperties": custom, "quality": quality.others, "logicalTypeOptions": options}
    return kept | {key: value for key, value in sections.items() if value}


def _key(entries: Mapping[str, Entry], what: str, name: str, nested: bool, found: Found) -> None:
    if "primaryKey" not in entries or not entries["primaryKey"].flag(f"primaryKey of {what}"):
        return
    if nested:
        entries["primaryKey"].wrong(f"{what} is nested and cannot be a key")
        return
    position = (
        entries["primaryKeyPosition"].whole(f"primaryKeyPosition of {what}") if "primaryKeyPosition" in entries else -1
    )
    found.keys.append((position if position > 0 else len(terms.ROOT) * 1000 + len(found.keys), name))
