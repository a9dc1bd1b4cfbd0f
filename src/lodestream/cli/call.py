"""What every command has: the shared options, and the object that carries their values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import Any

import click

from lodestream.cli.screen import Screen
from lodestream.config import Config, load_config

_KEY = "lodestream.shared"


class SharedOption(click.Option):
    """Understood by every command, before or after its name."""

    def __init__(self, *names: str, **settings: Any) -> None:
        super().__init__(names, expose_value=False, callback=_remember, **settings)


def _remember(context: click.Context, option: click.Parameter, value: Any) -> None:
    # `meta` is one mapping for a command and the groups around it.
    if value is not None and value is not False:
        context.meta.setdefault(_KEY, {})[option.name] = value


def shared_options() -> list[click.Parameter]:
    folder = click.Path(exists=True, file_okay=False, path_type=Path)
    return [
        SharedOption("--project", type=folder, metavar="DIR", help="The project's folder. Default: the current one."),
        SharedOption("--profile", metavar="NAME", help="The profile of lode.toml to use."),
        SharedOption("--json", is_flag=True, help="Print one JSON object to standard output and nothing else."),
        SharedOption("--quiet", "-q", is_flag=True, help="Show no progress."),
        SharedOption("--debug", is_flag=True, help="Show the whole traceback of an unexpected error."),
    ]


@dataclass(frozen=True)
class Call:
    """One invocation of a command."""

    project: Path | None = None
    profile: str | None = None
    json: bool = False
    quiet: bool = False
    debug: bool = False

    @classmethod
    def of(cls, context: click.Context) -> Call:
        return cls(**context.meta.get(_KEY, {}))

    @cached_property
    def screen(self) -> Screen:
        return Screen(json=self.json, quiet=self.quiet)

    @cached_property
    def config(self) -> Config:
        return load_config(start=self.project, profile=self.profile)


class LodeCommand(click.Command):
    """A command with the shared options and examples in its help."""

    def __init__(self, *arguments: Any, examples: tuple[str, ...] = (), **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.examples = examples
        self.params += shared_options()

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        _format_options(self, context, formatter)
        _format_examples(self.examples, formatter)


class LodeGroup(click.Group):
    """The same for a command that has commands of its own."""

    command_class = LodeCommand
    group_class = type

    def __init__(self, *arguments: Any, examples: tuple[str, ...] = (), **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.examples = examples
        self.params += shared_options()

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(context, formatter)
        _format_options(self, context, formatter)
        _format_examples(self.examples, formatter)


def _format_options(command: click.Command, context: click.Context, formatter: click.HelpFormatter) -> None:
    own: list[tuple[str, str]] = []
    shared: list[tuple[str, str]] = []
    for parameter in command.get_params(context):
        if record := parameter.get_help_record(context):
            (shared if isinstance(parameter, SharedOption) else own).append(record)
    for title, records in (("Options", own), ("Options of every command", shared)):
        with formatter.section(title):
            formatter.write_dl(records)


def _format_examples(examples: tuple[str, ...], formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            for line in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def pass_call(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the call as its first argument."""

    @wraps(command)
    def called(*arguments: Any, **options: Any) -> Any:
        return command(Call.of(click.get_current_context()), *arguments, **options)

    return called
