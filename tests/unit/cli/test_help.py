"""Help, completion and the shape of every command."""

from __future__ import annotations

import shutil
import subprocess
import sys

import click
import pytest

from lodestream._version import __version__
from lodestream.cli.main import lode as lode_group


def all_commands(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], click.Command]]:
    found: list[tuple[tuple[str, ...], click.Command]] = []
    for name, command in group.commands.items():
        found.append(((*path, name), command))
        if isinstance(command, click.Group):
            found += all_commands(command, (*path, name))
    return found


COMMANDS = all_commands(lode_group)


@pytest.mark.parametrize("path", [path for path, _ in COMMANDS], ids=" ".join)
def test_every_command_has_an_example_of_itself(lode, path):
    ended = lode(*path, "--help")
    assert ended.code == 0
    examples = ended.out.partition("Examples:")[2]
    assert f"lode {' '.join(path)}" in examples


@pytest.mark.parametrize("path", [path for path, _ in COMMANDS], ids=" ".join)
def test_every_command_takes_the_shared_options(lode, path):
    shared = lode(*path, "--help").out.partition("Options of every command:")[2]
    for option in ("--json", "--profile", "--project", "--quiet", "--debug"):
        assert option in shared


@pytest.mark.parametrize(
    "line", [example for _, command in COMMANDS for example in getattr(command, "examples", ())], ids=str
)
def test_every_example_parses(line):
    """An example that the command would refuse is worse than none."""
    import shlex

    words = shlex.split(line.partition(">")[0])[1:]
    context = lode_group.make_context("lode", list(words), resilient_parsing=False)
    name, command, rest = lode_group.resolve_command(context, [*context._protected_args, *context.args])
    while isinstance(command, click.Group):
        inner = command.make_context(name, rest, parent=context)
        name, command, rest = command.resolve_command(inner, [*inner._protected_args, *inner.args])
    assert command is not None
    command.make_context(name, rest, parent=context)


def test_the_version(lode):
    assert lode("--version").out == f"lode, version {__version__}\n"


def test_shared_options_work_before_and_after_the_command(lode, folder):
    (folder / "sub").mkdir()
    assert lode("--json", "--project", "sub", "broker", "status").json == {"running": False}
    assert lode("broker", "status", "--json", "--project", "sub").json == {"running": False}


def test_help_starts_fast(folder):
    """Nobody waits for Spark to read the help."""
    code = "import sys, lodestream.cli.main; print([m for m in ('pyspark', 'pyiceberg', 'py4j') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(lode, shell):
    if shell == "bash" and not shutil.which("bash"):
        pytest.skip("bash is not installed")
    assert "_LODE_COMPLETE" in lode("completion", shell).out


def test_the_bash_script_completes_commands(lode, tmp_path):
    script = tmp_path / "lode.bash"
    script.write_text(lode("completion", "bash").out)
    command = tmp_path / "lode"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m lodestream.cli "$@"\n')
    command.chmod(0o755)
    ask = (
        f"PATH={tmp_path}:$PATH; . {script}; COMP_WORDS=(lode st); COMP_CWORD=1; "
        "_lode_completion lode; echo ${COMPREPLY[@]}"
    )
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "status"
