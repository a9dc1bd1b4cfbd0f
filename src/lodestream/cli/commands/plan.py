"""`lode plan`: what would run, how, and what is wrong with it. Nothing is started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.filesize import decimal
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lodestream.cli.call import Call, LodeCommand, pass_call
from lodestream.cli.fitting import GAP, plain_table, width_of
from lodestream.config import format_duration

if TYPE_CHECKING:
    from lodestream.pipeline.lint import Finding
    from lodestream.planning.plan import Deep, PlannedTable
    from lodestream.planning.project import Project
    from lodestream.planning.rebuilds import PlannedChange, TableRead

TIER_STYLES = {"bronze": "color(173)", "silver": "color(250)", "gold": "color(220)"}


@click.command(
    cls=LodeCommand, examples=("lode plan", "lode plan --deep", "lode plan --json", "lode plan --accept silver.trips")
)
@click.option("--deep", is_flag=True, help="Let Spark itself read every function and query, over empty tables.")
@click.option("--accept", multiple=True, metavar="TABLE", help="Its readers agree to its new contract: record that.")
@pass_call
def plan(call: Call, deep: bool, accept: tuple[str, ...]) -> int:
    """Show each table, how it will be kept current, what is wrong with it, and what a change of it rebuilds.

    Everything wrong is told at once, each with its file, its line and the nearest name. What declarations and contracts
    tell is found without Java; with --deep, Spark reads every function and query over empty tables. Exit code 2 when
    there is an error: a run would stop on it, or a table that reads another would break.
    """
    from lodestream.planning.plan import make_plan
    from lodestream.planning.project import open_sound
    from lodestream.planning.reader_promises import accept_contracts

    project = open_sound(call.config)
    for said in accept_contracts(project, accept):
        call.screen.note(Text(said))
    made = make_plan(project, deep=_asked(call, project) if deep else None)
    shown = [*map(_change_text, made.changes), *map(_finding_text, made.findings)]
    call.screen.show(made, PlanView(made.tables, call.config.root), *shown)
    return 2 if made.blocked else 0


def _asked(call: Call, project: Project) -> Deep:
    from lodestream.engine.deep import ask_spark

    return ask_spark(project, call.screen.progress())


class PlanView:
    """Columns, where the way a table is kept has room beside its name; in a narrow terminal one below the other."""

    def __init__(self, tables: Sequence[PlannedTable], root: Path) -> None:
        self._tables, self._root = tables, root

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = plan_table(self._tables, self._root)
        beside = plan_table(self._tables, self._root, ways=False)
        if width_of(beside) + GAP + _WAY <= options.max_width:
            yield shown
            return
        for one in self._tables:
            yield from _lines(one, self._root)


def _lines(one: PlannedTable, root: Path) -> Iterator[RenderableType]:
    name = Text(one.name, style=f"bold {TIER_STYLES.get(one.tier, '')}", overflow="fold")
    yield name.append(f"  owner {one.owner}" if one.owner else "", style="not bold dim")
    source = ", ".join(_sources(one, root))
    if source:
        yield Padding(Text(f"from {source}", overflow="fold"), (0, 0, 0, 2))
    yield Padding(_way(one, root), (0, 0, 0, 2))


def _sources(one: PlannedTable, root: Path) -> list[str]:
    return list(one.inputs) or [(one.source or "").replace(f"{root}/", "")]


_WAY = 32  # characters that the way a table is kept needs beside the other columns


def plan_table(tables: Sequence[PlannedTable], root: Path, *, ways: bool = True) -> Table:
    shown = plain_table()
    shown.add_column("table", no_wrap=True)
    shown.add_column("from", overflow="fold")
    if ways:
        shown.add_column("kept current by", overflow="fold", ratio=1)
    shown.add_column("owner", no_wrap=True)
    for one in tables:
        name = Text(one.name, style=TIER_STYLES.get(one.tier, ""))
        source = "\n".join(_sources(one, root))
        shown.add_row(name, source, *([_way(one, root)] if ways else []), one.owner or "")
    return shown


def _way(one: PlannedTable, root: Path) -> Text:
    text = Text(one.strategy, style="bold")
    every = f", every {format_duration(one.every)}" if one.every is not None else ""
    text.append(f"{every}: {one.reason}", style="not bold")
    if one.sinks:
        text.append(f"\nsinks: {', '.join(one.sinks).replace(f'{root}/', '')}", style="not bold")
    return text.append(f"\ncheaper: {one.cheaper}", style="not bold dim") if one.cheaper else text


EFFECTS = {"build": "will be built", "rebuild": "will be rebuilt", "alter": "will be altered", "new rows": "changes"}


def _change_text(change: PlannedChange) -> Text:
    text = Text(f"\n{change.table}", style="bold cyan")
    text.append(f" {EFFECTS[change.effect]}: {change.why}", style="default not bold")
    if change.reads:
        text.append("\n  reads: ", style="default bold").append(
            ", ".join(map(_read_text, change.reads)), style="not bold"
        )
    if change.then:
        text.append("\n  then:  ", style="default bold").append(", ".join(change.then), style="default not bold")
    return text


def _read_text(read: TableRead) -> str:
    known = [f"{read.rows:,} rows"] if read.rows is not None else []
    known += [decimal(read.bytes)] if read.bytes is not None else []
    return f"{read.name} ({', '.join(known) or 'not stored yet'})"


def _finding_text(finding: Finding) -> Text:
    style = "bold red" if finding.severity == "error" else "bold yellow"
    text = Text(f"\n{finding.severity}", style=style)
    text.append(f": {finding.location}: {finding.message}", style="default not bold")
    for label, line in (("why", finding.why), ("fix", finding.fix)):
        if line:
            text.append(f"\n  {label}: ", style="default bold").append(line, style="default not bold")
    return text
