"""Which modules a piece of work enters, in order, and which of its calls go up through the layers."""

from __future__ import annotations

import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import lodestream

SOURCES = Path(lodestream.__file__).parent
PROJECT = Path(__file__).parents[3] / "pyproject.toml"
# They hold words and declarations, and no step of a batch.
VOCABULARY = ("errors", "names", "clock", "failpoints", "windows", "observe", "config", "pipeline")
# The redo loop and the staging are given what they do as an argument: that is a step of whoever gave it.
GIVEN_ITS_STEP = "tables/publish"


@dataclass
class Walk:
    """`modules` in order of first entry, each with its functions; `upward` are calls from a lower layer to a higher."""

    entered: dict[str, set[str]] = field(default_factory=dict)
    upward: set[tuple[str, str]] = field(default_factory=set)

    @property
    def modules(self) -> list[str]:
        return list(self.entered)

    def enter(self, frame: FrameType) -> None:
        module = _module(frame)
        if module is None:
            return
        self.entered.setdefault(module, set()).add(frame.f_code.co_qualname)
        caller = _caller(frame, module)
        if caller is not None and _height(_module(caller) or "") < _height(module):
            self.upward.add((_named(caller), _named(frame)))


@contextmanager
def walked() -> Iterator[Walk]:
    """Follow this thread and those that it starts."""
    walk = Walk()

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            walk.enter(frame)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield walk
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _module(frame: FrameType) -> str | None:
    """Ours, without the vocabulary. A module that is being imported takes no step."""
    if frame.f_code.co_name == "<module>":
        return None
    return _ours(frame.f_code.co_filename)


@cache
def _ours(file: str) -> str | None:
    if not file.startswith(f"{SOURCES}/"):
        return None
    module = file.removeprefix(f"{SOURCES}/").removesuffix(".py").removesuffix("/__init__")
    return None if module.split("/")[0] in VOCABULARY else module


def _caller(frame: FrameType, module: str) -> FrameType | None:
    found = frame.f_back
    while found is not None and (_module(found) is None or (_module(found) == GIVEN_ITS_STEP != module)):
        found = found.f_back
    return found


def _named(frame: FrameType) -> str:
    return f"{_module(frame)}: {frame.f_code.co_qualname}"


@cache
def _height(module: str) -> tuple[int, int]:
    """How high a module stands, by the layers that the import linter holds."""
    room, _, inner = module.partition("/")
    rooms, inside = _layers()
    return rooms.get(room, 0), inside[inner.partition("/")[0]] if room == "flows" else 0


@cache
def _layers() -> tuple[dict[str, int], dict[str, int]]:
    contracts = tomllib.loads(PROJECT.read_text())["tool"]["importlinter"]["contracts"]
    by_name = {one["name"]: one["layers"] for one in contracts if one["type"] == "layers"}
    return _heights(by_name["Imports go one way"]), _heights(by_name["One way down inside flows"])


def _heights(layers: list[str]) -> dict[str, int]:
    """The lowest layer is 0; rooms of one layer have `|` or `:` between them."""
    rows = [line.replace(":", "|").split("|") for line in reversed(layers)]
    return {name.strip("() "): number for number, row in enumerate(rows) for name in row}
