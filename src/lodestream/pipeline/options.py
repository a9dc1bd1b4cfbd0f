"""The keyword options of a declaration, checked and brought to the form that Table keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args

from lodestream.config import nearest, parse_duration
from lodestream.errors import DeclarationError
from lodestream.pipeline.decoders import DecoderDeclaration
from lodestream.pipeline.location import Location, declaration_error
from lodestream.pipeline.partitioning import check_bound, check_partitions
from lodestream.pipeline.sinks import SinkDecl, check_sinks
from lodestream.pipeline.sql import check_condition
from lodestream.pipeline.table import Action, Expectation, Filter, Strategy

Names = str | Sequence[str]
Shape = Literal["bronze", "silver", "gold", "reference"]
# Databricks says drop; here the rows go to the dead letters, so nothing is lost by it.
ActionWord = Literal["warn", "drop", "quarantine", "fail"]
_ACTIONS: dict[str, Action] = {"warn": "warn", "drop": "quarantine", "quarantine": "quarantine", "fail": "fail"}


class BronzeOptions(TypedDict, total=False):
    every: str
    owner: str
    partition_by: Names
    description: str
    properties: Mapping[str, str]
    sinks: SinkDecl | Sequence[SinkDecl]


class GoldOptions(BronzeOptions, total=False):
    contract: str | Path | type[Any]
    keys: Names
    lookup: Names
    strategy: Strategy
    export: str | Path
    verify: str
    expect: Mapping[str, str | tuple[str, ActionWord]]
    expect_action: ActionWord


class SilverOptions(BronzeOptions, total=False):
    contract: str | Path | type[Any]
    keys: Names
    lookup: Names
    expect: Mapping[str, str | tuple[str, ActionWord]]
    expect_action: ActionWord
    corrected_by: Names
    decode: DecoderDeclaration
    sequence_by: Names
    delete_when: str
    history: bool
    dedupe_within: Names
    filters: Mapping[str, str]
    allow_no_rows: bool


class ReferenceOptions(BronzeOptions, total=False):
    contract: str | Path | type[Any]
    keys: Names
    sequence_by: Names
    history: bool


_SHAPES: dict[str, type[Any]] = {"silver": SilverOptions, "gold": GoldOptions, "reference": ReferenceOptions}


def known_options(shape: Shape) -> frozenset[str]:
    """What a declaration may say."""
    # Bronze listens to Silver's options too, so that the lint can explain what belongs where.
    if shape == "bronze":
        return frozenset(SilverOptions.__annotations__)
    return frozenset(_SHAPES[shape].__annotations__)


def table_options(options: Mapping[str, Any], shape: Shape, location: Location) -> dict[str, Any]:
    """The options as fields of Table."""
    _check_known(options, known_options(shape), location)
    given = {name: value for name, value in options.items() if value is not None}
    fields: dict[str, Any] = {}
    for name, value in given.items():
        if name not in ("expect", "expect_action"):
            fields[name] = _CONVERT[name](name, value, location)
    if "expect" in given:
        fields["expectations"] = _expectations(given["expect"], given.get("expect_action", "warn"), location)
    _check_keyed(fields, location)
    _check_bounded(fields, location)
    return fields


def _check_known(options: Iterable[str], known: frozenset[str], location: Location) -> None:
    for name in options:
        if name not in known:
            close = nearest(name, sorted(known))
            raise declaration_error(
                location,
                f'unknown option "{name}"',
                why=f"valid: {', '.join(sorted(known))}",
                fix=f"did you mean {close}?" if close else "remove it",
            )


def _check_keyed(fields: Mapping[str, Any], location: Location) -> None:
    if "keys" in fields or "contract" in fields:  # a contract may name the keys
        return
    for name in ("sequence_by", "delete_when", "history", "dedupe_within"):
        if fields.get(name):
            raise declaration_error(
                location,
                f"{name} needs keys",
                why="only rows with a key can be updated, deleted, have a history or come twice",
                fix='add keys="id", or a contract that names the key',
            )


def _check_bounded(fields: Mapping[str, Any], location: Location) -> None:
    given = [name for name in ("sequence_by", "delete_when", "history") if fields.get(name)]
    if fields.get("dedupe_within") and given:
        raise declaration_error(
            location,
            f"dedupe_within does not go with {given[0]}",
            why="the last change of a key wins wherever its row lies, so there are no duplicates to look for",
            fix="remove dedupe_within",
        )


def check_names(name: str, value: Any, location: Location) -> tuple[str, ...]:
    """Column or table names: one as text, or several."""
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, Sequence) or not all(isinstance(one, str) and one for one in names):
        raise declaration_error(location, f"{name}={value!r} is wrong", fix=f'write {name}="id" or {name}=["a", "b"]')
    if len(set(names)) < len(names):
        raise declaration_error(location, f"{name}={value!r} names one thing twice")
    return tuple(names)


def _duration(name: str, value: Any, location: Location) -> float:
    try:
        seconds = parse_duration(value)
    except (ValueError, TypeError) as error:
        raise declaration_error(location, f"{name}: {error}", fix=f'write {name}="15 min"') from error
    if not seconds:
        raise declaration_error(location, f"{name} must be more than nothing", fix=f'write {name}="1 s"')
    return seconds


def _export(name: str, value: Any, location: Location) -> Path:
    if not isinstance(value, str | Path) or Path(value).suffix != ".parquet":
        raise declaration_error(
            location, f"{name}={value!r} names no Parquet file", fix=f'write {name}="exports/daily.parquet"'
        )
    return location.folder / value


def _contract(name: str, value: Any, location: Location) -> Path | type[Any]:
    if isinstance(value, type):
        return value
    return file_beside(name, value, location)


def file_beside(name: str, value: Any, location: Location) -> Path:
    """A path taken from the folder of the declaring file; whether it is there is another question."""
    if not isinstance(value, str | Path) or not str(value):
        raise declaration_error(location, f"{name}={value!r} is no path", fix=f'write {name}="folder/file"')
    return location.folder / Path(value).expanduser()


def missing_file(name: str, path: Path, location: Location) -> DeclarationError | None:
    """What to say of a file that is not there. It may be on its way: an editor or a deployment replaces it."""
    if path.is_file():
        return None
    shown = path.relative_to(location.folder) if path.is_relative_to(location.folder) else path
    around = sorted(one.name for one in path.parent.iterdir()) if path.parent.is_dir() else []
    close = nearest(path.name, around)
    return declaration_error(
        location,
        f'{name}="{shown}": there is no such file',
        why=f"looked for {path}",
        fix=f"did you mean {shown.with_name(close)}?" if close else "create it, or correct the path",
    )


def _partitions(_name: str, value: Any, location: Location) -> tuple[str, ...]:
    return check_partitions(value, location)


def _bound(_name: str, value: Any, location: Location) -> tuple[str, ...]:
    return check_bound(value, location)


def _condition(name: str, value: Any, location: Location) -> str:
    return check_condition(value, location, name)


def _filters(name: str, value: Any, location: Location) -> tuple[Filter, ...]:
    if not isinstance(value, Mapping):
        raise declaration_error(
            location, f"{name} must name each filter", fix='write filters={"completed": "status = \'done\'"}'
        )
    return tuple(Filter(one, check_condition(sql, location, f'filter "{one}"')) for one, sql in value.items())


def _expectations(value: Any, fallback: str, location: Location) -> tuple[Expectation, ...]:
    if not isinstance(value, Mapping):
        raise declaration_error(
            location,
            "expect must name each expectation",
            fix='write expect={"positive fare": "fare_amount >= 0"}',
        )
    found: list[Expectation] = []
    for name, given in value.items():
        sql, word = given if isinstance(given, tuple) and len(given) == 2 else (given, fallback)
        checked = check_condition(sql, location, f'expectation "{name}"')
        found.append(Expectation(name, checked, _action(name, word, location)))
    return tuple(found)


def _action(name: str, word: object, location: Location) -> Action:
    if not isinstance(word, str) or word not in _ACTIONS:
        raise declaration_error(
            location,
            f'expectation "{name}" has the unknown action {word!r}',
            fix='use "warn", "quarantine" (or "drop") or "fail"',
        )
    return _ACTIONS[word]


def _instance(*types: type[Any]) -> Callable[[str, Any, Location], Any]:
    def convert(name: str, value: Any, location: Location) -> Any:
        if isinstance(value, types):
            return value
        names = " or ".join(one.__name__ for one in types)
        raise declaration_error(location, f"{name} is {value!r}", fix=f"give it a {names}")

    return convert


def _decoder(name: str, value: Any, location: Location) -> DecoderDeclaration:
    if isinstance(value, DecoderDeclaration):
        return value
    raise declaration_error(
        location, f"{name} is {value!r}", fix='give it a decoder, such as Json("id bigint") or Raw()'
    )


def _strategy(name: str, value: Any, location: Location) -> Any:
    if value not in get_args(Strategy):
        raise declaration_error(
            location, f"unknown {name} {value!r}", fix=f"use one of {', '.join(get_args(Strategy))}"
        )
    return value


def _properties(name: str, value: Any, location: Location) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise declaration_error(location, f"{name} is {value!r}", fix="give it a dict of Iceberg properties")
    return {str(key): str(one).lower() if isinstance(one, bool) else str(one) for key, one in value.items()}


_CONVERT: dict[str, Callable[[str, Any, Location], Any]] = {
    "allow_no_rows": _instance(bool),
    "contract": _contract,
    "corrected_by": check_names,
    "dedupe_within": _bound,
    "decode": _decoder,
    "delete_when": _condition,
    "description": _instance(str),
    "every": _duration,
    "export": _export,
    "filters": _filters,
    "history": _instance(bool),
    "keys": check_names,
    "lookup": check_names,
    "owner": _instance(str),
    "partition_by": _partitions,
    "properties": _properties,
    "sequence_by": check_names,
    "sinks": check_sinks,
    "strategy": _strategy,
    "verify": _duration,
}
