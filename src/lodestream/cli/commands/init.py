"""`lode init`: a new project."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
from rich.text import Text

from lodestream.cli.call import Call, LodeCommand, pass_call
from lodestream.cli.screen import short_path
from lodestream.starter import write_project


@click.command(cls=LodeCommand, examples=("lode init shop", "lode init . --json"))
@click.argument("name")
@pass_call
def init(call: Call, name: str) -> None:
    """Write a small working project into the new or empty folder NAME."""
    folder = (call.project or Path.cwd()) / name
    files = write_project(folder)
    shown = short_path(folder.resolve())
    lines = [Text(f"wrote {len(files)} files to {shown}\n")]
    if folder.resolve() != Path.cwd():
        lines.append(Text(f"  cd {shlex.quote(shown)}"))
    lines += [Text("  lode run --once    # bring its tables up to date"), Text("  lode status"), Text("  pytest")]
    call.screen.show({"project": str(folder.resolve()), "files": [str(file) for file in files]}, *lines)
