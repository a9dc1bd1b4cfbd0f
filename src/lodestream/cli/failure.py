"""Errors on the screen: what, why and fix; for the unexpected, where the traceback went."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from lodestream._version import __version__
from lodestream.cli.screen import error_json, print_json
from lodestream.errors import LodeError

STOPPED = 130  # what shells report for Ctrl-C


def show_error(error: LodeError, *, json: bool) -> int:
    """The exit code of an error that was raised on purpose."""
    if json:
        print_json({"error": error_json(error)})
    else:
        _console().print(error_text(error))
    return error.exit_code


def error_text(error: LodeError) -> Text:
    """How every error looks. What comes before the last line of a long `what` is the user's own traceback."""
    *before, what = error.what.rstrip().split("\n") if _ends_with_summary(error) else [error.what]
    text = Text("\n".join([*before, ""]) if before else "")
    text.append(type(error).__name__, style="bold red").append(f": {what}")
    for label, line in (("why", error.why), ("fix", error.fix)):
        if line:
            text.append(f"\n  {label}: ", style="bold").append(line)
    return text


def _ends_with_summary(error: LodeError) -> bool:
    return not getattr(error, "problems", ())


def show_usage(error: click.UsageError, *, json: bool) -> int:
    """Wrong words on the command line."""
    fix = f"{error.ctx.command_path} --help" if error.ctx else "lode --help"
    if json:
        shown = {"name": "UsageError", "what": error.format_message(), "why": None, "fix": fix}
        print_json({"error": {**shown, "exit_code": error.exit_code}})
    else:
        text = Text("UsageError", style="bold red").append(f": {error.format_message()}", style="not bold default")
        _console().print(text.append("\n  fix: ", style="bold").append(fix))
    return error.exit_code


def show_crash(error: Exception, arguments: list[str], *, json: bool, debug: bool) -> int:
    """Something nobody foresaw. The traceback goes to a file, which a report can quote."""
    what = "".join(traceback.format_exception_only(error)).strip()
    file = _write_report(error, arguments)
    fix = f"see {file}; `--debug` shows it at once"
    if json:
        shown = {"name": "Unexpected", "what": what, "why": "this is a bug in Lodestream", "fix": fix}
        print_json({"error": {**shown, "exit_code": 1}})
    else:
        console = _console()
        if debug:
            console.print(Text("".join(traceback.format_exception(error))))
        console.print(Text("Unexpected", style="bold red").append(f": {what}", style="not bold default"))
        console.print(Text("  why: ", style="bold").append("this is a bug in Lodestream", style="not bold"))
        console.print(Text("  fix: ", style="bold").append(fix, style="not bold"))
    return 1


def _write_report(error: Exception, arguments: list[str]) -> Path:
    name = f"crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    heading = f"lode {' '.join(arguments)}\nlodestream {__version__}, Python {sys.version}\n\n"
    content = heading + "".join(traceback.format_exception(error))
    for folder in (_logs_folder(), Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content, encoding="utf-8")
        except OSError:
            continue
        return folder / name
    return Path("nowhere: no folder could be written to")


def _logs_folder() -> Path:
    here = Path.cwd()
    root = next((one for one in (here, *here.parents) if (one / "lode.toml").is_file()), here)
    return root / ".lode" / "logs"


def _console() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True)
