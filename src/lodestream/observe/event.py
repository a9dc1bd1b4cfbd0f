"""What every event has, whatever it tells: its name, moment, run and table, and its form in the log.

A type of event is a dataclass made by `event_type`. It is written as one JSON object a line, so its fields are part of
the format on disk: a field may be added with a default, never renamed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, ClassVar, TypeVar, Union, cast, dataclass_transform, get_args, get_origin, get_type_hints

_OWN = ("time", "run", "event", "table")
_LONGEST = 120


class Severity(StrEnum):
    """How much an event matters to whoever reads the log."""

    GOOD = "good"
    NORMAL = "normal"
    WARNING = "warning"
    ALERT = "alert"  # somebody should look: a flow makes no progress, or a table is wrong

    @property
    def level(self) -> int:
        """Alerts are logged at the level that wakes people."""
        return logging.ERROR if self is Severity.ALERT else logging.INFO


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened. The log that it is given to stamps it with its run and the moment."""

    event_name: ClassVar[str]
    severity: ClassVar[Severity] = Severity.NORMAL
    # Told of every batch: whoever asks for the state of flows need not read them.
    frequent: ClassVar[bool] = False
    # What is known of its flow afterwards: "" when it goes on, None when the event says nothing about that.
    flow_state: ClassVar[str | None] = None
    # Fields that stand in the log file alone: too long for a line, or rows of a table.
    unlogged: ClassVar[tuple[str, ...]] = ()

    table: str | None = None
    time: float = field(default=0.0, kw_only=True)
    run: str = field(default="", kw_only=True)
    extra: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    """Fields in a log that this version does not know."""

    @property
    def name(self) -> str:
        return str(self.event_name)

    def facts(self) -> dict[str, Any]:
        """What it tells. A field that may be missing, and is, is left out."""
        known = {one: getattr(self, one) for one in type(self).told()}
        optional = {one.name for one in fields(self) if one.default is None}
        return {
            **{key: value for key, value in known.items() if value is not None or key not in optional},
            **self.extra,
        }

    def to_json(self) -> dict[str, Any]:
        return {"time": self.time, "run": self.run, "event": self.name, "table": self.table, **self.facts()}

    def line(self) -> str:
        shown = {"flow": self.table, **self.facts()}
        told = (f"{k}={_short(v)}" for k, v in shown.items() if v is not None and k not in self.unlogged)
        return " ".join([self.name, *told])

    @classmethod
    def told(cls) -> tuple[str, ...]:
        """The names of its own fields, as they are written."""
        return tuple(one.name for one in fields(cls) if one.name not in _BASE)

    @staticmethod
    def from_json(raw: Mapping[str, Any]) -> Event:
        """The event as its own type; one that this version does not know, or knows otherwise, as `OtherEvent`."""
        about: dict[str, Any] = {"table": raw.get("table"), "time": float(raw["time"]), "run": str(raw["run"])}
        facts = {key: value for key, value in raw.items() if key not in _OWN}
        reader = _READERS.get(raw["event"])
        try:
            if reader is not None:
                return reader(about, facts)
        except TypeError:
            pass
        return OtherEvent(**about, called=str(raw["event"]), extra=facts)


@dataclass(frozen=True, slots=True)
class OtherEvent(Event):
    """An event of another version, with everything that its line has."""

    called: str = field(default="", kw_only=True)

    @property
    def name(self) -> str:
        return self.called

    def facts(self) -> dict[str, Any]:
        return dict(self.extra)


E = TypeVar("E", bound=type[Event])
_BASE = frozenset(one.name for one in fields(Event))
_TYPES: list[type[Event]] = []
_READERS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Event]] = {}


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def event_type(cls: E) -> E:
    """Make a class a type of event: frozen, slotted, read from the log by its name."""
    made = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    if made.event_name in _READERS:
        raise TypeError(f"two types of event are called {made.event_name}")
    _TYPES.append(made)
    _READERS[made.event_name] = _reader(made)
    return cast("E", made)


def event_types() -> tuple[type[Event], ...]:
    """Every type that this version knows."""
    return tuple(_TYPES)


def _reader(cls: type[Event]) -> Callable[[Mapping[str, Any], Mapping[str, Any]], Event]:
    """Makes an event of a line; raises TypeError when a field is missing or of another type."""
    fits: dict[str, Callable[[Any], Any]] = {}

    def read(about: Mapping[str, Any], facts: Mapping[str, Any]) -> Event:
        if not fits:
            hints = get_type_hints(cls)
            fits.update((name, _fit(hints[name])) for name in cls.told())
        known = {name: fit(facts[name]) for name, fit in fits.items() if name in facts}
        extra = {key: value for key, value in facts.items() if key not in fits}
        return cls(**about, **known, extra=extra)

    return read


def _fit(hint: Any) -> Callable[[Any], Any]:
    """Gives a value as its type wants it, or raises TypeError. JSON knows lists alone, and writes 1.0 and 1."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value: value
    if origin in (Union, UnionType):
        (kind,) = (one for one in args if one is not NoneType)
        inner = _fit(kind)
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        each = _fit(args[0])
        return lambda value: tuple(map(each, _typed(value, (list,))))
    if origin is not None:
        one = _fit(args[1])
        return lambda value: {key: one(found) for key, found in _typed(value, (dict,)).items()}
    wanted = (float, int) if hint is float else (hint,)
    return lambda value: _typed(value, wanted)


def _typed(value: Any, wanted: tuple[type, ...]) -> Any:
    if type(value) not in wanted:  # a bool is no int
        raise TypeError(f"{value!r} is no {wanted[0].__name__}")
    return value


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, tuple):
        value = list(value)
    text = str(value) if not isinstance(value, Mapping) else json.dumps(value, separators=(",", ":"))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
