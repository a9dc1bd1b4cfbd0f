"""Write docs/commands.md from the command line itself. `./dev docs` calls it; `./dev check` compares."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from lodestream.cli.call import SharedOption
from lodestream.cli.main import EXIT_CODES, lode

FILE = Path(__file__).with_name("commands.md")
HEADING = """# Commands

Made by `./dev docs` from the command line itself; change the help texts, not this file.

Results go to standard output, progress and messages to standard error. With `--json`, standard output carries one
object and nothing else; an error is `{"error": {"name": ..., "what": ..., "why": ..., "fix": ..., "exit_code": ...}}`.
"""


def reference() -> str:
    parts = [HEADING, "## Options of every command\n", _options(lode, shared=True), "## Exit codes\n", _exit_codes()]
    parts += [_command(command, f"lode {name}") for name, command in sorted(lode.commands.items())]
    return "\n".join(parts)


def _command(command: click.Command, path: str) -> str:
    context = click.Context(command, info_name=path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    parts = [f"## {path}\n", f"{command.help}\n", f"```text\n{usage}\n```\n", _options(command, shared=False)]
    examples = "\n".join(getattr(command, "examples", ()))
    parts.append(f"```text\n{examples}\n```\n")
    if isinstance(command, click.Group):
        parts += [_command(inner, f"{path} {name}") for name, inner in sorted(command.commands.items())]
    return "\n".join(part for part in parts if part)


def _options(command: click.Command, *, shared: bool) -> str:
    context = click.Context(command)
    rows = []
    for parameter in command.params:
        if isinstance(parameter, SharedOption) == shared and (record := parameter.get_help_record(context)):
            rows.append(f"| `{record[0]}` | {record[1]} |")
    return "\n".join(["| option | |", "|---|---|", *rows, ""]) if rows else ""


def _exit_codes() -> str:
    lines = [line.strip().split(maxsplit=1) for line in EXIT_CODES.splitlines() if line.strip()[:1].isdigit()]
    return "\n".join(["| code | meaning |", "|---|---|", *(f"| {code} | {text} |" for code, text in lines), ""])


if __name__ == "__main__":
    FILE.write_text(reference(), encoding="utf-8")
    print(f"wrote {FILE}", file=sys.stderr)
