"""`lode plan`: what would run, how, and what is wrong with it. Nothing is started."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from lodestream.cli.call import Call, LodeCommand, pass_call
from lodestream.config import format_duration

if TYPE_CHECKING:
    from lodestream.engine import PlannedTable
    from lodestream.pipeline.lint import Finding

TIER_STYLES = {"bronze": "color(173)", "silver": "color(250)", "gold": "color(220)"}


@click.command(cls=LodeCommand, examples=("lode plan", "lode plan --json", "lode plan --accept silver.trips"))
@click.option("--accept", multiple=True, metavar="TABLE", help="Its readers agree to its new contract: record that.")
@pass_call
def plan(call: Call, accept: tuple[str, ...]) -> int:
    """Show each table, its inputs and how it will be kept current, and what a changed contract breaks for whom.

    Exit code 2 when the pipeline breaks a rule of its tiers, or a contract breaks a table that reads it.
    """
    from lodestream.engine import make_plan, open_project
    from lodestream.engine.promises import accept_contracts

    project = open_project(call.config)
    for said in accept_contracts(project, accept):
        call.screen.note(Text(said))
    made = make_plan(project)
    call.screen.show(made, plan_table(made.tables, call.config.root), *map(_finding_text, made.findings))
    return 2 if made.blocked else 0


def plan_table(tables: Sequence[PlannedTable], root: Path) -> Table:
    shown = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    shown.add_column("table", no_wrap=True)
    shown.add_column("from", overflow="fold")
    shown.add_column("kept current by", overflow="fold", ratio=1)
    shown.add_column("owner", no_wrap=True)
    for one in tables:
        name = Text(one.name, style=TIER_STYLES.get(one.tier, ""))
        source = "\n".join(one.inputs) or (one.source or "").replace(f"{root}/", "")
        shown.add_row(name, source, _way(one), one.owner or "")
    return shown


def _way(one: PlannedTable) -> Text:
    text = Text(one.strategy, style="bold")
    every = f", every {format_duration(one.every)}" if one.every is not None else ""
    text.append(f"{every}: {one.reason}", style="not bold")
    return text.append(f"\ncheaper: {one.cheaper}", style="not bold dim") if one.cheaper else text


def _finding_text(finding: Finding) -> Text:
    style = "bold red" if finding.severity == "error" else "bold yellow"
    text = Text(f"\n{finding.severity}", style=style)
    text.append(f": {finding.location}: {finding.message}", style="default not bold")
    for label, line in (("why", finding.why), ("fix", finding.fix)):
        text.append(f"\n  {label}: ", style="default bold").append(line, style="default not bold")
    return text
