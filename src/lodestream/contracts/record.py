"""Contracts as Python classes: annotated names are columns, plain attributes are what the contract says of itself."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from lodestream.config.duration import parse_duration
from lodestream.contracts.annotations import described
from lodestream.contracts.check import valid
from lodestream.contracts.limits import Limits
from lodestream.contracts.model import Contract, Field, Masking, Reading, Threshold
from lodestream.errors import ContractError

ABOUT = (
    "name", "version", "id", "dataset", "status", "owner", "description", "rules", "keys", "event_time",
    "lateness", "freshness", "limit", "extras",
)  # fmt: skip
_LIMITS = tuple(found.name for found in fields(Limits))
_READING = tuple(found.name for found in fields(Reading))


@dataclass(frozen=True, slots=True)
class Column:
    """What `column(...)` was told about one column."""

    type: str | None
    required: bool | None
    key: bool
    name: str | None
    options: Mapping[str, Any]


def column(
    type: str | None = None,
    *,
    required: bool | None = None,
    key: bool = False,
    name: str | None = None,
    **options: Any,
) -> Any:
    """One column of a Record. Options are those of Field, Limits and Reading: `minimum=0`, `rounding="half_up"`."""
    known = {found.name for found in fields(Field)} - {"limits", "reading", "line"} | {*_LIMITS, *_READING}
    for option in options:
        if option not in known:
            from lodestream.contracts.document import nearest

            raise ContractError(f"column() has no option {option}", fix=nearest(option, known))
    return Column(type, required, key, name, options)


class Record:
    """Base of contracts written in Python.

    class Trip(Record):
        "One taxi trip."
        version = "1.0.0"
        owner = "mobility"
        trip_id: str = column(key=True)
        fare: Decimal = column("decimal(10,2)", minimum=0)
        tip: Decimal | None = column("decimal(10,2)")
        rules = [Rule("tip is not above the fare", "tip is null or tip <= fare")]
    """

    __about__: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **about: Any) -> None:
        super().__init_subclass__()
        own = {name: value for name, value in vars(cls).items() if name in ABOUT and not isinstance(value, Column)}
        inherited = {name: value for name, value in cls.__about__.items() if name not in ("name", "description")}
        cls.__about__ = {**inherited, **own, **about}

    @classmethod
    def contract(cls) -> Contract:
        """The contract that this class states. Raises ContractError with all that is wrong with it."""
        found = columns(cls)
        about = dict(cls.__about__)
        documentation = inspect.cleandoc(cls.__doc__) if cls.__dict__.get("__doc__") and cls.__doc__ else None
        keys = tuple(about.get("keys", ())) or tuple(field.name for field, key in found if key)
        stated = Contract(
            name=about.get("name", cls.__name__.lower()),
            version=about.get("version", ""),
            fields=tuple(field for field, _ in found),
            id=about.get("id", ""),
            dataset=about.get("dataset", ""),
            status=about.get("status", "active"),
            owner=about.get("owner"),
            description=about.get("description", documentation),
            rules=tuple(about.get("rules", ())),
            keys=keys,
            event_time=about.get("event_time"),
            lateness=_seconds(about.get("lateness")),
            freshness=_seconds(about.get("freshness")),
            limit=_threshold(about.get("limit")),
            extras=about.get("extras", {}),
        )
        return valid(stated, f"{cls.__module__}.{cls.__qualname__}")


def columns(record: type[Record]) -> list[tuple[Field, bool]]:
    """Each column and whether it is part of the key, inherited ones first."""
    try:
        hints = {name: hint for base in reversed(record.__mro__) for name, hint in _annotations(base).items()}
    except NameError as unknown:
        raise ContractError(
            f"{record.__qualname__} uses a type that is not known: {unknown}", fix="import it at the top of the module"
        ) from unknown
    return [_column(record, name, hint) for name, hint in hints.items() if not name.startswith("__")]


def _annotations(base: type) -> dict[str, Any]:
    # Evaluated without the class's own names: in `date: date = column()` the type is meant, not the column.
    space = vars(sys.modules[base.__module__]) if base.__module__ in sys.modules else {}
    return inspect.get_annotations(base, globals=space, locals={}, eval_str=True)


def _column(record: type[Record], attribute: str, hint: Any) -> tuple[Field, bool]:
    stated = getattr(record, attribute, None)
    stated = stated if isinstance(stated, Column) else Column(None, None, False, None, {})
    about = described(hint, f"{record.__qualname__}.{attribute}", stated.type, _inside)
    limits = {name: value for name, value in stated.options.items() if name in _LIMITS}
    if about.values:
        limits.setdefault("values", about.values)
    field = Field(
        name=stated.name or attribute,
        type=about.type,
        required=about.required if stated.required is None else stated.required,
        fields=about.fields,
        items=about.items,
        limits=Limits(**_tuples(limits)),
        reading=Reading(**{name: value for name, value in stated.options.items() if name in _READING}),
    )
    rest = {key: value for key, value in stated.options.items() if key not in (*_LIMITS, *_READING)}
    if isinstance(rest.get("masking"), str):
        rest["masking"] = Masking.parse(rest["masking"])
    return replace(field, **_tuples(rest)), stated.key or about.key


def _inside(hint: Any) -> tuple[Field, ...] | None:
    """The columns of a nested Record, or None for any other type."""
    if inspect.isclass(hint) and issubclass(hint, Record):
        return tuple(field for field, _ in columns(hint))
    return None


def _tuples(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}


def _seconds(value: str | float | None) -> float | None:
    return parse_duration(value) if isinstance(value, str) else value


def _threshold(value: str | Threshold | None) -> Threshold | None:
    return Threshold.parse(value) if isinstance(value, str) else value
