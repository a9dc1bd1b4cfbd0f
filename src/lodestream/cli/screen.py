"""Where output goes: results to standard output, everything else to standard error."""

from __future__ import annotations

import base64
import json
import math
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console, RenderableType

from lodestream.cli.progress import PlainProgress, RichProgress
from lodestream.errors import AlreadyRuns, LodeError
from lodestream.runtime.progress import Progress, SilentProgress

_UNBOUNDED = 1_000


class Screen:
    """A command's output. With `json`, standard output carries one object and nothing else."""

    def __init__(self, *, json: bool, quiet: bool) -> None:
        self.json = json
        self.quiet = quiet

    @cached_property
    def out(self) -> Console:
        return Console(highlight=False, soft_wrap=not sys.stdout.isatty(), width=_width(sys.stdout))

    @cached_property
    def err(self) -> Console:
        return Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty(), width=_width(sys.stderr))

    def show(self, result: Any, *shown: RenderableType) -> None:
        """The result of a command: `result` for programs, `shown` for people."""
        if self.json:
            print_json(result)
        else:
            for one in shown:
                self.out.print(one)

    def note(self, text: RenderableType) -> None:
        """Something a person may want to know meanwhile."""
        if not self.quiet:
            self.err.print(text)

    def progress(self) -> Progress:
        if self.quiet:
            return SilentProgress()
        return RichProgress(self.err) if self.err.is_terminal else PlainProgress(self.err)


def _width(stream: TextIO) -> int | None:
    """A file or another program takes lines of any length: nothing is cut there, unless `COLUMNS` says so."""
    return None if stream.isatty() or "COLUMNS" in os.environ else _UNBOUNDED


def print_json(result: Any) -> None:
    sys.stdout.write(json.dumps(to_json(result), ensure_ascii=False) + "\n")
    sys.stdout.flush()


def print_json_rows(before: Mapping[str, Any], name: str, rows: Iterable[Any], after: Mapping[str, Any]) -> None:
    """One object as `print_json` writes it, whose list is written while it is read.

    An error on the way ends the list where it is and stands behind it, so that what was written can be read.
    """
    sys.stdout.write(json.dumps(to_json(before), ensure_ascii=False)[:-1] + f', "{name}": [')
    end, failed = after, None
    try:
        for number, one in enumerate(rows):
            sys.stdout.write((", " if number else "") + json.dumps(to_json(one), ensure_ascii=False))
    except LodeError as error:
        end, failed = {"error": error_json(error)}, error
    sys.stdout.write("], " + json.dumps(to_json(end), ensure_ascii=False)[1:] + "\n")
    sys.stdout.flush()
    if failed is not None:
        raise SystemExit(failed.exit_code)


def to_json(value: Any) -> Any:
    """Dataclasses, paths, times and our errors as what JSON knows: bytes as base64, what is no number as text."""
    if isinstance(value, LodeError):
        return error_json(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: to_json(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(one) for one in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def error_json(error: LodeError) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": type(error).__name__,
        "what": error.what,
        "why": error.why,
        "fix": error.fix,
        "exit_code": error.exit_code,
    }
    if isinstance(error, AlreadyRuns):
        shown["holder"] = error.holder
    problems = getattr(error, "problems", ())
    if problems:
        shown["problems"] = [to_json(one) if isinstance(one, LodeError) else str(one) for one in problems]
    return shown


def short_path(path: Path) -> str:
    """Relative to the current folder when that is shorter to type."""
    try:
        relative = str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
    return relative if relative != "." else str(path)
