"""`lode flow`: the flows of a run that goes on in another process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from lodestream.cli.call import Call, LodeCommand, LodeGroup, pass_call
from lodestream.cli.fitting import Fitted, plain_table

if TYPE_CHECKING:
    from lodestream.engine.control import Word
    from lodestream.engine.flow_control import FlowState

_STYLES = {"stopped": "bold red", "blocked": "bold red", "retrying": "yellow", "paused": "yellow", "running": "green"}


@click.group(cls=LodeGroup, examples=("lode flow list", "lode flow restart silver.orders"))
def flow() -> None:
    """The flows of a running `lode run`: list, pause, resume or restart one, without touching the others."""


@flow.command("list", cls=LodeCommand, examples=("lode flow list", "lode flow list --json"))
@pass_call
def list_states(call: Call) -> None:
    """What each flow of the run is doing, asked of the run itself. Needs no Java."""
    from lodestream.engine.flow_control import list_flows
    from lodestream.planning.project import open_project

    found = list_flows(open_project(call.config, tolerant=True))
    call.screen.show({"flows": found}, flows_view(found))


@flow.command(cls=LodeCommand, examples=("lode flow pause gold.daily_revenue",))
@click.argument("table")
@pass_call
def pause(call: Call, table: str) -> None:
    """No further batch of TABLE until it is resumed; the one under way may end. A new run knows of no pause."""
    _tell(call, "pause", table)


@flow.command(cls=LodeCommand, examples=("lode flow resume gold.daily_revenue",))
@click.argument("table")
@pass_call
def resume(call: Call, table: str) -> None:
    """Go on with TABLE after a pause."""
    _tell(call, "resume", table)


@flow.command(cls=LodeCommand, examples=("lode flow restart silver.orders",))
@click.argument("table")
@pass_call
def restart(call: Call, table: str) -> None:
    """Begin TABLE anew, whatever stopped it, as a new run would; contracts are read again.

    What stopped it stops it again unless it was put right: nothing is skipped. Edited SQL and Python need a new run.
    """
    _tell(call, "restart", table)


def _tell(call: Call, word: Word, table: str) -> None:
    from lodestream.engine.flow_control import tell_flow
    from lodestream.planning.project import open_project

    told = tell_flow(open_project(call.config, tolerant=True), word, table)
    call.screen.show(told, Text(f"{told.table} {told.said}"))


def flows_view(flows: list[FlowState]) -> Fitted:
    reasons = {one.table: f"{one.error['name']}: {one.error['what']}" for one in flows if one.error}
    return Fitted(_table(flows, reasons), [_table(flows), _table(flows, batches=False)], reasons)


def _table(flows: list[FlowState], reasons: Mapping[str, str] | None = None, *, batches: bool = True) -> Table:
    shown = plain_table()
    for name in ("table", "state", *(["batches"] if batches else []), "rows"):
        shown.add_column(name, justify="right" if name in ("batches", "rows") else "left", overflow="fold")
    if reasons:
        shown.add_column("why", overflow="fold", ratio=1)
    for one in flows:
        state = Text(one.state, style=_STYLES.get(one.state, ""))
        why = [reasons.get(one.table, "")] if reasons else []
        shown.add_row(one.table, state, *([f"{one.batches:,}"] if batches else []), f"{one.rows:,}", *why)
    return shown
