"""`lode status`: where every table is."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING

import click
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lodestream.cli.call import Call, LodeCommand, pass_call
from lodestream.cli.commands.plan import TIER_STYLES

if TYPE_CHECKING:
    from lodestream.engine import Status, TableStatus

_STATE_STYLES = {
    "running": "green",
    "waiting": "green",
    "retrying": "yellow",
    "paused": "yellow",
    "blocked": "bold red",
    "stopped": "bold red",
}


@click.command(cls=LodeCommand, examples=("lode status", "lode status --watch", "lode status --json"))
@click.option("--watch", "-w", is_flag=True, help="Look again and again until Ctrl-C.")
@click.option("--every", default=1.0, show_default=True, type=click.FloatRange(0.1), help="Seconds between two looks.")
@pass_call
def status(call: Call, watch: bool, every: float) -> None:
    """Show each table's rows, lag, freshness and last batch. Works beside a run, and when nothing runs.

    `rows` is what a reader finds; `lag` the rows still to come, from the source to here, and empty when the source
    cannot be asked; `behind` how old that makes the table; `fresh` the age of the moment up to which it is complete, by
    the inputs that it follows. `state` is that of its flow in the run that lives: running, waiting for news, retrying,
    blocked until something outside is put right, paused or stopped, with the reason; idle when no run keeps the table.
    """
    from lodestream.engine import open_project, read_status

    project = open_project(call.config)
    found = read_status(project)
    if not watch or call.json:
        call.screen.show(found, status_table(found))
        return
    with Live(status_table(found), console=call.screen.out, auto_refresh=False) as live:
        while True:
            time.sleep(every)
            live.update(status_table(read_status(project)), refresh=True)


def status_table(found: Status) -> Table:
    shown = Table(box=None, pad_edge=False, header_style="bold")
    shown.add_column("table")
    for title in ("rows", "lag", "behind", "fresh"):
        shown.add_column(title, justify="right")
    for title in ("last batch", "state"):
        shown.add_column(title)
    troubled = any(one.error for one in found.tables)
    if troubled:
        shown.add_column("reason", overflow="fold", ratio=1)
    for one in found.tables:
        shown.add_row(*_cells(one), *([one.error or ""] if troubled else []))
    return shown


def _cells(one: TableStatus) -> tuple[Text | str, ...]:
    return (
        Text(one.name, style=TIER_STYLES.get(one.tier, "")),
        "" if one.rows is None else f"{one.rows:,}",
        "" if one.lag_events is None else f"{one.lag_events:,}",
        seconds(one.lag_seconds),
        seconds(one.freshness_s),
        _batch(one),
        Text(one.state or "", style=_STATE_STYLES.get(one.state or "", "")),
    )


def _batch(one: TableStatus) -> str:
    if one.last_batch is None:
        return ""
    return f"{one.batch or 0:,} at {datetime.fromtimestamp(one.last_batch):%H:%M:%S}"


def seconds(value: float | None) -> str:
    """A span as short as it can be said."""
    if value is None:
        return ""
    if value < 100:
        return f"{value:.1f} s"
    if value < 6000:
        return f"{value / 60:.0f} min"
    return f"{value / 3600:.0f} h" if value < 360_000 else f"{value / 86400:.0f} d"
