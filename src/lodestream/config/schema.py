"""The options by their dotted key, and the nearest one to a key that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from typing import Any

from lodestream.config.model import SECTIONS, Kind

TOP_KEYS = ("pipeline", "profile", "profiles")


@dataclass(frozen=True, slots=True)
class Option:
    """One thing that can be set."""

    key: str
    kind: Kind
    default: Any
    doc: str
    choices: tuple[str, ...]
    least: float

    @property
    def variable(self) -> str:
        return "LODE_" + self.key.replace(".", "_").upper()


def _options() -> Iterable[Option]:
    yield Option("pipeline", "text", "pipeline.py", "File of the pipeline, or `file.py:name`.", (), 0)
    yield Option("profile", "text", "local", "Profile to use when none is asked for.", (), 0)
    for name, section in SECTIONS.items():
        for one in fields(section):
            default = None if one.default is MISSING else one.default
            yield Option(f"{name}.{one.name}", default=default, **one.metadata)


OPTIONS: dict[str, Option] = {one.key: one for one in _options()}


def section_keys(section: str) -> tuple[str, ...]:
    return tuple(one.name for one in fields(SECTIONS[section]))


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """The valid name that was most likely meant."""
    by_lower = {one.lower(): one for one in valid}
    close = get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.5)
    return by_lower[close[0]] if close else None
