"""What a declared function is, for whoever must notice an edit: its text, and that of the project's code it reaches.

Names are followed through the text of modules: functions, classes, constants, imports. What a module computes when it
is imported is not looked at, so a project has the same fingerprint in every process and on every machine.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
from collections.abc import Callable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePath
from types import CellType, CodeType, FunctionType
from typing import Any

from lodestream.pipeline.code_names import nodes_of
from lodestream.pipeline.own_modules import OwnModule, OwnModules
from lodestream.pipeline.reached_text import ReachedText

_PLAIN = (bytes, int, float, complex, bool, type(None), Decimal, date, time, timedelta, Enum)


def source_fingerprint(function: Callable[..., Any]) -> str:
    """Changes when the text of the function changes, or of anything in the project's own folder that it reaches."""
    reached = _Reached()
    reached.value("", function)
    found = {**reached.texts, **(reached.code.texts if reached.code else {})}
    text = "\0".join(f"{place}\0{source}" for place, source in sorted(found.items()))
    return hashlib.sha256(text.encode()).hexdigest()


class _Reached:
    """Objects that a function holds: what no text says. A closure of 2 and one of 3 have the same text."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.code: ReachedText | None = None
        # Kept, so that no other object is given the number of one that was seen.
        self._seen: dict[int, Any] = {}

    def value(self, place: str, value: Any) -> None:
        if isinstance(value, str | PurePath):
            self.texts[place] = self._portable(str(value))
        elif isinstance(value, _PLAIN):
            self.texts[place] = repr(value)
        elif id(value) not in self._seen:
            self._seen[id(value)] = value
            self._held(place, value)

    def _held(self, place: str, value: Any) -> None:
        match value:
            case FunctionType():
                self._function(place, value)
            case functools.partial():
                self.value(f"{place}.func", value.func)
                self._each(place, {**dict(enumerate(value.args)), **value.keywords})
            case list() | tuple():
                self._each(place, dict(enumerate(value)))
            case dict():
                self._each(place, value)
            case set() | frozenset():
                self._each(place, dict(enumerate(sorted(value, key=repr))))
            case _ if inspect.ismethod(value):
                self.value(f"{place}.self", value.__self__)
                self.value(f"{place}.func", value.__func__)
            case _:
                self._object(place, value)

    def _each(self, place: str, values: Mapping[Any, Any]) -> None:
        self.texts[f"{place}.size"] = str(len(values))
        for number, (key, value) in enumerate(values.items()):
            named = repr(key) if isinstance(key, (str, *_PLAIN)) else ""
            self.value(f"{place}.{number}.{named}", value)

    def _function(self, place: str, function: FunctionType) -> None:
        code, module = function.__code__, self._module(function.__code__.co_filename)
        nodes = nodes_of(module.tree, code) if module is not None else []
        within = f"{place}:{code.co_qualname}"
        self.texts[within] = "\n".join(map(module.source, nodes)) if module and nodes else _text_of(code)
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        for name, cell in cells.items():
            self._cell(f"{within}.{name}", cell)
        self._each(f"{within}.defaults", dict(enumerate(function.__defaults__ or ())))
        self._each(f"{within}.named", function.__kwdefaults__ or {})
        if hasattr(function, "__wrapped__"):
            self.value(f"{within}.wrapped", function.__wrapped__)
        for node in nodes:
            if module is not None and self.code is not None:
                self.code.follow(module, node, besides=frozenset(cells))

    def _cell(self, place: str, cell: CellType) -> None:
        try:
            self.value(place, cell.cell_contents)
        except ValueError:  # empty: a name that the outer function has not set
            return

    def _object(self, place: str, value: Any) -> None:
        """An instance or a class of the project: its class, and what it holds. Others are somebody else's code."""
        kind = value if isinstance(value, type) else type(value)
        methods = [one.__code__.co_filename for one in vars(kind).values() if isinstance(one, FunctionType)]
        home = getattr(sys.modules.get(kind.__module__), "__file__", None)
        found = (self._module(file) for file in (*methods, home) if file)
        module = next((one for one in found if one is not None), None)
        if module is None or self.code is None:
            return
        self.texts[f"{place}.class"] = kind.__qualname__
        self.code.name(module, kind.__qualname__.partition(".")[0])
        if kind is not value:
            self._each(f"{place}.holds", dict(getattr(value, "__dict__", {})))

    def _module(self, file: str) -> OwnModule | None:
        if not Path(file).is_file():
            return None
        if self.code is None:
            self.code = ReachedText(OwnModules(Path(file).resolve()))
        return self.code.modules.at(Path(file))

    def _portable(self, text: str) -> str:
        """The same wherever the project lies."""
        return text.replace(str(self.code.modules.root), ".") if self.code else text


def _text_of(code: CodeType) -> str:
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):
        return _compiled(code)


def _compiled(code: CodeType) -> str:
    """A function without text is known by what it was compiled to."""
    inner = [_compiled(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return "\n".join([code.co_code.hex(), *code.co_names, *inner])
