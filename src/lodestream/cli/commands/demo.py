"""`lode demo`: taxi trips through all three tiers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.live import Live
from rich.text import Text

from lodestream.cli.call import Call, LodeCommand, pass_call
from lodestream.cli.commands.run import show_failures
from lodestream.cli.commands.status import status_view
from lodestream.cli.demo_screen import DemoScreen
from lodestream.cli.event_line import event_line
from lodestream.cli.library_logs import keep_library_logs
from lodestream.cli.look_around import look_around
from lodestream.cli.stop_signals import StopSignals
from lodestream.observe import BatchPublished, only

if TYPE_CHECKING:
    from lodestream.demo.memory import PeakMemory
    from lodestream.demo.show import Demo

_SHOWN = ("gold.daily_summary", ("pickup_date", "total_trips", "total_revenue"))


@click.command(
    cls=LodeCommand,
    examples=("lode demo", "lode demo --rate 2000 --keep taxi", "lode demo --once --events 10000 --json"),
)
@click.option("--once", is_flag=True, help="Make a number of events, bring every table up to date, and exit.")
@click.option("--events", default=10_000, show_default=True, type=click.IntRange(1), help="How many, with --once.")
@click.option("--rate", default=1_000.0, show_default=True, type=click.FloatRange(1), help="Events a second, live.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Same seed, same events.")
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Work in DIR, and go on there next time. Default: .lode/demo, emptied at each start.",
)
@pass_call
def demo(call: Call, once: bool, events: int, rate: float, seed: int, keep: Path | None) -> int:
    """Stream New York taxi trips through Bronze, Silver and Gold, live, until Ctrl-C."""
    from lodestream.demo.folder import DemoFolder
    from lodestream.demo.memory import PeakMemory
    from lodestream.demo.show import Demo, Seconds

    clock = Seconds(began=time.monotonic())
    folder = DemoFolder.of(keep)
    once = once or call.json  # a program wants one result
    pace: dict[str, Any] = {"events": events} if once else {"rate": rate}
    with PeakMemory() as memory, Demo.started(folder, call.screen.progress(), clock, seed=seed, **pace) as started:
        keep_library_logs(started.project.config, events_shown=True)
        if once:
            return _once(call, started, memory)
        return _live(call, started, memory, rate)


def _once(call: Call, demo: Demo, memory: PeakMemory) -> int:
    from lodestream.demo.show import events_in_topic, summary
    from lodestream.engine import read_status

    progress = call.screen.progress()
    with progress.step("Making the events"):
        demo.generator.wait()
    with StopSignals() as signals:
        signals.running = True
        end = demo.run(once=True, listener=lambda event: call.screen.note(event_line(event)), stop=signals.stop)
    if signals.stop.is_set() and not end.exit_code:
        raise KeyboardInterrupt
    status = read_status(demo.project)
    sent = events_in_topic(demo.broker.bootstrap)
    result = summary(status, sent, demo.seconds, memory.peak_mb, demo.project)
    if end.exit_code == 0:
        heading = Text(f"\n{sent:,} events, {demo.seconds.total:.1f} s, at most {memory.peak_mb:,} MB\n")
        call.screen.show(result, heading, status_view(status), Text(), *look_around(demo.project, *_SHOWN))
        return 0
    return show_failures(call, end)


def _live(call: Call, demo: Demo, memory: PeakMemory, rate: float) -> int:
    from lodestream.demo.watch import Watch

    with StopSignals() as signals, Watch(demo) as watch:
        signals.running = True
        shown = DemoScreen(watch, memory, rate)
        with Live(shown, console=call.screen.out, refresh_per_second=4, redirect_stdout=False, redirect_stderr=False):
            end = demo.run(once=False, listener=only(watch.hear, BatchPublished), stop=signals.stop)
    for line in look_around(demo.project, *_SHOWN):
        call.screen.out.print(line)
    return show_failures(call, end) if end.exit_code else 0
