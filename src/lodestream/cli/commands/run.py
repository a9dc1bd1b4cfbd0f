"""`lode run`: keep the tables current."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.text import Text

from lodestream.cli.call import Call, LodeCommand, pass_call
from lodestream.cli.event_line import event_line
from lodestream.cli.failure import STOPPED, error_text
from lodestream.cli.library_logs import keep_library_logs
from lodestream.cli.screen import error_json, print_json, to_json
from lodestream.cli.stop_signals import StopSignals
from lodestream.observe import Event

if TYPE_CHECKING:
    from lodestream.engine import RunEnd
    from lodestream.engine.runner import FlowEnd
    from lodestream.engine.sinks import SinkEnd


@click.command(
    cls=LodeCommand,
    examples=(
        "lode run",
        "lode run --once --json",
        "lode run --only 'silver.*' --only gold.daily_summary",
        "lode run --once --accept-gap bronze.trips_raw",
        "lode run --take-over",
    ),
)
@click.option("--once", is_flag=True, help="Bring every table up to date, then exit.")
@click.option("--only", multiple=True, metavar="PATTERN", help="Only these tables; may be given several times.")
@click.option("--accept-gap", multiple=True, metavar="TABLE", help="Go on over a gap in this table's source.")
@click.option("--adopt", multiple=True, metavar="TABLE", help="Take over this table, which holds rows of another's.")
@click.option("--take-over", is_flag=True, help="End the run that keeps these tables now, and go on in its place.")
@pass_call
def run(
    call: Call,
    once: bool,
    only: tuple[str, ...],
    accept_gap: tuple[str, ...],
    adopt: tuple[str, ...],
    take_over: bool,
) -> int:
    """Run the pipeline until Ctrl-C, or once.

    While another run keeps one of the tables this one says so and exits with 5. `lode flow` speaks to a run.
    """
    from lodestream.engine import run_pipeline
    from lodestream.planning.project import open_project

    project = open_project(call.config)
    keep_library_logs(call.config, events_shown=not call.quiet)

    def tell(event: Event) -> None:
        signals.running = True
        call.screen.note(event_line(event))

    with StopSignals() as signals:
        end = run_pipeline(
            project,
            once=once,
            only=only,
            accept_gaps=accept_gap,
            adopt=adopt,
            take_over=take_over,
            progress=call.screen.progress(),
            listeners=(tell,),
            stop=signals.stop,
            exit_code=lambda end: exit_code(end, interrupted=signals.interrupted),
        )
    lines = [Text(f"{table}: {_ended(flow)}") for table, flow in end.flows.items()]
    lines += [Text(f"{name}: {_sink_ended(sink)}") for name, sink in end.sinks.items()]
    code = exit_code(end, interrupted=signals.interrupted)
    call.screen.show({**to_json(end), "exit_code": code}, *lines, Text(f"run ended: {ended_why(end, code)}"))
    if not call.json:
        show_failures(call, end)
    return code


def exit_code(end: RunEnd, *, interrupted: bool) -> int:
    """Ctrl-C ended the run, whichever of its flows had stopped before: those are told, and `lode status` knows them."""
    return STOPPED if interrupted else end.exit_code


def ended_why(end: RunEnd, code: int) -> str:
    stopped = [table for table, flow in end.flows.items() if flow.state == "stopped"]
    return f"Ctrl-C; {', '.join(stopped)} had stopped on an error" if code == STOPPED and stopped else end.reason


def _ended(flow: FlowEnd) -> str:
    deleted = f", {flow.deleted:,} deleted" if flow.deleted else ""
    batches, rows = ("batch" if flow.batches == 1 else "batches"), ("row" if flow.rows == 1 else "rows")
    return f"{flow.reason}, {flow.batches:,} {batches}, {flow.rows:,} {rows}{deleted}"


def _sink_ended(sink: SinkEnd) -> str:
    said = "delivered" if sink.error is None else type(sink.error).__name__
    return f"{said}, {sink.deliveries:,} {'delivery' if sink.deliveries == 1 else 'deliveries'}"


def show_failures(call: Call, end: RunEnd) -> int:
    """The exit code of a run, after each flow's error was shown."""
    errors = end.errors
    if call.json and errors:
        print_json({"error": error_json(errors[0])})
    elif errors:
        for error in errors:
            call.screen.err.print(error_text(error))
    return end.exit_code
