"""Where in the user's files something was declared."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from lodestream.errors import DeclarationError


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A line of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def folder(self) -> Path:
        return Path(self.file).parent


def caller_location() -> Location:
    """The line, outside this package, that called into it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_back is not None and _is_ours(frame):
        frame = frame.f_back
    assert frame is not None  # noqa: S101 (a call always has a frame)
    return Location(frame.f_code.co_filename, frame.f_lineno)


def location_of(function: Callable[..., Any]) -> Location | None:
    """The line where a function starts (its first decorator), or None for callables without code."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return Location(code.co_filename, code.co_firstlineno) if code else None


def declaration_error(
    location: Location, what: str, *, why: str | None = None, fix: str | None = None
) -> DeclarationError:
    """An error that points at the user's line."""
    return DeclarationError(f"{location}: {what}", why=why, fix=fix, file=location.file, line=location.line)


def raise_together(problems: list[DeclarationError]) -> None:
    """Raise what was found, all of it in one error."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        listed = "\n".join("  " + str(problem).replace("\n", "\n  ") for problem in problems)
        raise DeclarationError(
            f"{len(problems)} problems in the pipeline\n{listed}",
            file=problems[0].file,
            line=problems[0].line,
            problems=tuple(problems),
        )


def _is_ours(frame: FrameType) -> bool:
    # By module name, not by folder: the examples travel inside the package and are user code.
    return str(frame.f_globals.get("__name__", "")).split(".")[0] == "lodestream"
