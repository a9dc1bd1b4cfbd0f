"""`lode events`: what happened, from the append-only log."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import click

from lodestream.cli.call import Call, LodeCommand, pass_call
from lodestream.cli.event_line import event_line
from lodestream.observe import Event, read_events

_FOLLOW_SECONDS = 0.5


@click.command(
    cls=LodeCommand,
    examples=(
        "lode events --last 20",
        "lode events --table silver.trips --name batch",
        "lode events --name flow.stopped --json",
    ),
)
@click.option(
    "--last", "-n", default=50, show_default=True, type=click.IntRange(0), help="How many of the last; 0: all."
)
@click.option("--table", metavar="TABLE", help="Only of this table.")
@click.option("--name", metavar="NAME", help="Only events whose name begins so: batch, flow.stopped.")
@click.option("--run", metavar="RUN", help="Only of this run.")
@click.option("--follow", "-f", is_flag=True, help="Go on with new events until Ctrl-C.")
@pass_call
def events(call: Call, last: int, table: str | None, name: str | None, run: str | None, follow: bool) -> None:
    """Show what runs did: batches, refusals, retries, stops."""
    state_dir = call.config.state_dir
    if table is not None:
        from lodestream.engine.event_names import table_of_events

        table = table_of_events(call.config, table)
    found = deque(read_events(state_dir, run=run, table=table, name=name), maxlen=last or None)
    shown = sorted(found, key=lambda event: event.time)
    if not shown and not call.json:
        asked = " that were asked for" if name or run else f" of {table}" if table else "; `lode run` writes them"
        call.screen.note(f"no events{asked}")
    call.screen.show({"events": [event.to_json() for event in shown]}, *map(event_line, shown))
    if follow and not call.json:
        for event in _news(state_dir, shown[-1].time if shown else 0.0, run, table, name):
            call.screen.out.print(event_line(event))


def _news(state_dir: Path, since: float, run: str | None, table: str | None, name: str | None) -> Iterator[Event]:
    while True:
        time.sleep(_FOLLOW_SECONDS)
        new = [event for event in read_events(state_dir, run=run, table=table, name=name) if event.time > since]
        yield from sorted(new, key=lambda event: event.time)
        since = max((event.time for event in new), default=since)
