"""What a contract says, as frozen values. Nothing here needs YAML, Python classes or Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from lodestream.config.duration import format_duration, parse_duration
from lodestream.contracts import quoting
from lodestream.contracts.limits import Limits

if TYPE_CHECKING:
    from lodestream.contracts.violations import Violation

Action = Literal["warn", "quarantine", "fail"]
Rounding = Literal["half_up"]
Epoch = Literal["s", "ms", "us"]

_THRESHOLD = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%(?:\s+over\s+(.+?))?\s*")


@dataclass(frozen=True, slots=True)
class Threshold:
    """How many rows may break a rule: `5 %` of a batch, or `5 % over 1 min` of the rows in that time."""

    percent: float
    window: float | None = None

    @classmethod
    def parse(cls, text: str) -> Threshold:
        match = _THRESHOLD.fullmatch(text)
        if match is None or float(match[1]) > 100:
            raise ValueError(f'"{text}" is not a limit: write "5 %" or "5 % over 1 min"')
        return cls(float(match[1]), parse_duration(match[2]) if match[2] else None)

    def __str__(self) -> str:
        over = f" over {duration_text(self.window)}" if self.window else ""
        return f"{quoting.number(self.percent).removesuffix('.0')} %{over}"


@dataclass(frozen=True, slots=True)
class Masking:
    """How a sensitive value is shown: hash (keyed), redact, or tokenise all but the last digits."""

    method: Literal["hash", "redact", "last"]
    keep: int = 0

    @classmethod
    def parse(cls, text: str) -> Masking:
        if text in ("hash", "redact"):
            return cls("hash" if text == "hash" else "redact")
        match = re.fullmatch(r"last\s+([1-9][0-9]?)", text)
        if match is None:
            raise ValueError(f'"{text}" is not a masking: write hash, redact or "last 4"')
        return cls("last", int(match[1]))

    def __str__(self) -> str:
        return f"last {self.keep}" if self.method == "last" else self.method


@dataclass(frozen=True, slots=True)
class Reading:
    """How an incoming value becomes the field's type. Everything here is off until the contract says it."""

    coerce: bool = False
    rounding: Rounding | None = None
    epoch: Epoch | None = None
    zone: str | None = None
    format: str | None = None
    any_case: bool = False
    non_finite: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """One column. `type` is Spark DDL; `fields` (of a struct) and `items` (of an array) describe what is inside."""

    name: str
    type: str
    required: bool = False
    unique: bool = False
    description: str | None = None
    source: str | None = None
    aliases: tuple[str, ...] = ()
    classification: str | None = None
    masking: Masking | None = None
    limits: Limits = field(default=Limits())
    reading: Reading = Reading()
    examples: tuple[Any, ...] = field(default=(), hash=False)
    fields: tuple[Field, ...] = ()
    items: Field | None = None
    extras: Mapping[str, Any] = field(default_factory=dict, hash=False)
    line: int | None = field(default=None, compare=False, repr=False)

    @property
    def source_name(self) -> str:
        """The name in the event: its own unless the contract says another."""
        return self.source or self.name


@dataclass(frozen=True, slots=True)
class Rule:
    """A Spark SQL condition that must be true of each row; null is not true."""

    name: str
    expression: str
    action: Action = "quarantine"
    threshold: Threshold | None = None
    description: str | None = None
    column: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict, hash=False)
    line: int | None = field(default=None, compare=False, repr=False)


def rule(name: str, expression: str, then: str = "quarantine", *, description: str | None = None) -> Rule:
    """A rule as one says it: `rule("paid", "fare > 0", "fail above 5 % over 1 min")`."""
    action, threshold = parse_action(then)
    return Rule(name, expression, action, threshold, description)


def parse_action(text: str) -> tuple[Action, Threshold | None]:
    """`quarantine`, or `fail above 5 % over 1 min`. Raises ValueError with what is wrong."""
    action, _, limit = text.partition(" above ")
    if action not in ("warn", "quarantine", "fail"):
        raise ValueError(f'"{text}" is not an action: write warn, quarantine or fail, or "fail above 5 %"')
    return cast(Action, action), Threshold.parse(limit) if limit else None


@dataclass(frozen=True, slots=True)
class Contract:
    """One table's contract: what its owner promises and its readers may rely on."""

    name: str
    version: str
    fields: tuple[Field, ...]
    id: str = ""
    dataset: str = ""
    status: str = "active"
    owner: str | None = None
    description: str | None = None
    rules: tuple[Rule, ...] = ()
    keys: tuple[str, ...] = ()
    event_time: str | None = None
    lateness: float | None = None
    freshness: float | None = None
    limit: Threshold | None = None
    extras: Mapping[str, Any] = field(default_factory=dict, hash=False)
    file: Path | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        # An omitted id or dataset is the name; kept as values so that every written form is complete.
        object.__setattr__(self, "id", self.id or self.name)
        object.__setattr__(self, "dataset", self.dataset or self.name)
        # ODCS keeps a column's rules with the column: one order, whichever form the contract was written in.
        places = {found.name: place for place, found in enumerate(self.fields)}
        ordered = sorted(self.rules, key=lambda rule: places.get(rule.column, -1) if rule.column else -1)
        object.__setattr__(self, "rules", tuple(ordered))

    def __getitem__(self, name: str) -> Field:
        return next(found for found in self.fields if found.name == name)

    def __contains__(self, name: object) -> bool:
        return any(found.name == name for found in self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    @property
    def title(self) -> str:
        """As an operator says it: `trips 2.1.0`."""
        return f"{self.name} {self.version}"

    def unique_besides(self, keys: Sequence[str]) -> tuple[str, ...]:
        """The columns that are unique by themselves; a key of one column is, whatever the field says."""
        return tuple(found.name for found in self.fields if found.unique and tuple(keys) != (found.name,))

    @property
    def never_null(self) -> frozenset[str]:
        """The columns that have a value in every row; rows without their key could not be told apart."""
        return frozenset(found.name for found in self.fields if found.required or found.name in self.keys)

    def ddl(self, *, constraints: bool = False) -> str:
        """The columns as Spark DDL; with `constraints`, also NOT NULL and COMMENT, as a table has them."""
        return ", ".join(_column_ddl(found, constraints, found.name in self.never_null) for found in self.fields)

    def violations(self, *, arrival: str | None = None) -> tuple[Violation, ...]:
        """Conditions that are true where a conformed row must not reach the table.

        `arrival` is a SQL expression for the time the event reached the broker; without it lateness is not checked.
        """
        from lodestream.contracts import violations

        return violations.of(self, arrival=arrival)

    def warnings(self) -> tuple[Violation, ...]:
        """Conditions that are true where a row is published and counted as a warning."""
        from lodestream.contracts import violations

        return violations.warned(self)


def duration_text(seconds: float) -> str:
    """A duration as text that parses back to exactly the same number of seconds."""
    short = format_duration(seconds)
    return short if _same(short, seconds) else f"{quoting.number(seconds)} s"


def _same(text: str, seconds: float) -> bool:
    try:
        return parse_duration(text) == seconds
    except ValueError:
        return False


def _column_ddl(found: Field, constraints: bool, never_null: bool) -> str:
    ddl = f"{quoting.name(found.name)} {found.type}"
    if not constraints:
        return ddl
    ddl += " NOT NULL" if never_null else ""
    return ddl + (f" COMMENT {quoting.text(found.description)}" if found.description else "")
