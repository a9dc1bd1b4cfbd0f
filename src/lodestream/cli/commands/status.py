"""`lode status`: where every table is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lodestream.cli.call import Call, LodeCommand, pass_call
from lodestream.cli.commands.plan import TIER_STYLES
from lodestream.cli.fitting import Fitted, plain_table
from lodestream.clock import utc

if TYPE_CHECKING:
    from lodestream.engine import Status, TableStatus
    from lodestream.engine.sink_status import SinkStatus

_STATE_STYLES = {
    "running": "green",
    "waiting": "green",
    "queued": "green",
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
    cannot be asked; `behind` the age of the oldest event that waits; `fresh` the age of the moment up to which it is
    complete, by the inputs that it follows. `state` is that of its flow in the run that lives: running when a batch is
    under way, waiting for news, retrying, blocked until something outside is put right, paused or stopped, with the
    reason; idle when no run keeps the table, unless the last one stopped on something that is still to be decided.
    """
    from lodestream.engine import read_status
    from lodestream.planning.project import open_project

    project = open_project(call.config, tolerant=True)
    found = read_status(project)
    if not watch or call.json:
        call.screen.show(found, status_view(found))
        return
    with Live(status_view(found), console=call.screen.out, auto_refresh=False) as live:
        while True:
            time.sleep(every)
            live.update(status_view(read_status(project)), refresh=True)


def status_view(found: Status) -> Fitted:
    """The table as wide as the terminal allows: what matters least is left out first, no name and no number is cut."""
    tables = [status_table(found, without, reasons=False) for without in _LEFT_OUT]
    return Fitted(status_table(found), tables, {one.name: reason for one in found.tables if (reason := _reason(one))})


def status_table(found: Status, without: Sequence[str] = (), *, reasons: bool = True) -> Table:
    shown = plain_table()
    troubled = reasons and any(map(_reason, found.tables))
    titles = [title for title in _TITLES if title not in without]
    for title in titles:
        shown.add_column(title, justify="right" if title in _NUMBERS else "left", overflow="fold")
    if troubled:
        shown.add_column("reason", overflow="fold", ratio=1)
    for one in found.tables:
        cells = _cells(one, "batch" in without)
        shown.add_row(*(cells[title] for title in titles), *([_reason(one)] if troubled else []))
    return shown


def _reason(one: TableStatus) -> str:
    """Most errors begin with the table, which stands before them here."""
    behind = [f"sink {sink.name} is {_behind(sink)}" for sink in one.sinks if sink.error]
    return "; ".join([*([(one.error or "").removeprefix(f"{one.name}: ")] if one.error else []), *behind])


def _behind(sink: SinkStatus) -> str:
    if sink.behind is None:
        return "at a snapshot that is gone"
    return f"{sink.behind:,} snapshot{'' if sink.behind == 1 else 's'} behind"


# What is left out where the terminal is narrow, more from step to step; "batch" is the number of the last one.
_LEFT_OUT = (
    (),
    ("batch",),
    ("last batch",),
    ("last batch", "behind"),
    ("last batch", "behind", "fresh"),
    ("last batch", "behind", "fresh", "lag"),
)
_NUMBERS = ("rows", "lag", "behind", "fresh")
_TITLES = ("table", *_NUMBERS, "last batch", "state")


def _cells(one: TableStatus, brief: bool) -> dict[str, Text | str]:
    """By the title of their column."""
    return {
        "table": Text(one.name, style=TIER_STYLES.get(one.tier, "")),
        "rows": "" if one.rows is None else f"{one.rows:,}",
        "lag": "" if one.lag_events is None else f"{one.lag_events:,}",
        "behind": seconds(one.lag_seconds),
        "fresh": seconds(one.freshness_s),
        "last batch": _batch(one, brief),
        "state": Text(one.state or "", style=_STATE_STYLES.get(one.state or "", "")),
    }


def _batch(one: TableStatus, brief: bool) -> str:
    if one.last_batch is None:
        return ""
    return utc(one.last_batch) if brief else f"{one.batch or 0:,} at {utc(one.last_batch)}"


def seconds(value: float | None) -> str:
    """A span as short as it can be said."""
    if value is None:
        return ""
    if value < 100:
        return f"{value:.1f} s"
    if value < 6000:
        return f"{value / 60:.0f} min"
    return f"{value / 3600:.0f} h" if value < 360_000 else f"{value / 86400:.0f} d"
