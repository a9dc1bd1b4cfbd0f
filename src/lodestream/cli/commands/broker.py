"""`lode broker`: the project's own Kafka."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from lodestream.cli.call import Call, LodeCommand, LodeGroup, pass_call
from lodestream.cli.screen import short_path, to_json

if TYPE_CHECKING:
    from lodestream.runtime.broker import BrokerInfo

_FOLLOW_SECONDS = 0.2


@click.group(
    cls=LodeGroup, examples=("lode broker start", "lode broker send shop.orders < orders.json", "lode broker logs -f")
)
def broker() -> None:
    """Start, stop, feed and look at the embedded Kafka broker."""


@broker.command(cls=LodeCommand, examples=("lode broker start",))
@pass_call
def start(call: Call) -> None:
    """Start the broker, or find the one that runs. It lives until it is stopped."""
    from lodestream.runtime.broker import start_broker

    found = start_broker(call.config, call.screen.progress(), detached=True)
    verb = "started" if found.started else "already running"
    call.screen.show(_facts(found), Text(f"broker {verb} at {found.bootstrap} (process {found.pid})"))


@broker.command(cls=LodeCommand, examples=("lode broker stop",))
@pass_call
def stop(call: Call) -> None:
    """Stop the broker; its data stays."""
    from lodestream.runtime.broker import stop_broker

    with call.screen.progress().step("Stopping the Kafka broker"):
        stopped = stop_broker(call.config)
    call.screen.show({"stopped": stopped}, Text("broker stopped" if stopped else "no broker is running"))


@broker.command(cls=LodeCommand, examples=("lode broker status --json",))
@pass_call
def status(call: Call) -> int:
    """Say whether the broker runs, and where. Exit code 1 when it does not."""
    from lodestream.runtime.broker import broker_status

    found = broker_status(call.config)
    if found is None:
        call.screen.show({"running": False}, Text("no broker is running"))
        return 1
    text = f"broker runs at {found.bootstrap} (process {found.pid}), data in {short_path(found.data)}"
    call.screen.show(_facts(found), Text(text))
    return 0


@broker.command(cls=LodeCommand, examples=("lode broker logs --lines 20", "lode broker logs -f"))
@click.option("--lines", "-n", default=50, show_default=True, help="How many of the last lines.")
@click.option("--follow", "-f", is_flag=True, help="Go on with new lines until Ctrl-C.")
@pass_call
def logs(call: Call, lines: int, follow: bool) -> None:
    """Show what the broker wrote to its log."""
    from lodestream.runtime.broker import log_path

    path = log_path(call.config)
    written = path.read_bytes() if path.is_file() else b""
    last = written.decode(errors="replace").splitlines()[-lines:] if lines > 0 else []
    if follow and not call.json:
        call.screen.show(None, *map(Text, last))
        _follow(call, path, len(written))
    else:
        call.screen.show({"file": str(path), "lines": last}, *map(Text, last))


@broker.command(
    cls=LodeCommand,
    examples=(
        """lode broker send shop.orders '{"order_id": "o-1", "amount": 12.5}'""",
        "lode broker send shop.orders --key o-1 --header source=test < orders.json",
    ),
)
@click.argument("topic")
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@click.option("--key", metavar="TEXT", help="The key of every event.")
@click.option("--header", "headers", multiple=True, metavar="NAME=TEXT", help="A header; may be given several times.")
@pass_call
def send(call: Call, topic: str, values: tuple[str, ...], key: str | None, headers: tuple[str, ...]) -> None:
    """Send events to TOPIC: each VALUE as it is written, or without any each line of standard input.

    For trying a pipeline out, beside `lode run` or `lode demo`. A topic that no table reads is refused.
    """
    from lodestream.engine.send import send_events
    from lodestream.planning.project import open_project

    project = open_project(call.config)
    given: Iterable[bytes] = (value.encode() for value in values)
    if not values:
        given = _lines(call)
    sent = send_events(project, topic, given, key=key.encode() if key is not None else None, headers=_headers(headers))
    many = "1 event" if sent.events == 1 else f"{sent.events:,} events"
    last = f", the last at {sent.last}" if sent.last else ""
    call.screen.show(sent, Text(f"{many} sent to {topic}{last}, for {', '.join(sent.tables)}"))


def _lines(call: Call) -> Iterator[bytes]:
    if sys.stdin.isatty():
        call.screen.note("type one event a line; Ctrl-D ends")
    empty = 0
    for line in sys.stdin.buffer:
        if value := line.rstrip(b"\r\n"):
            yield value
        else:
            empty += 1
    if empty:
        call.screen.note(
            f"{empty:,} empty line{' was' if empty == 1 else 's were'} not sent; '' as a VALUE is an empty event"
        )


def _headers(given: tuple[str, ...]) -> dict[str, bytes]:
    for one in given:
        if "=" not in one:
            raise click.UsageError(f'--header "{one}" has no value: write NAME=TEXT')
    return {name: value.encode() for name, _, value in (one.partition("=") for one in given)}


def _follow(call: Call, path: Path, offset: int) -> None:
    while True:
        size = path.stat().st_size if path.is_file() else 0
        if size < offset:  # the broker began a new log
            offset = 0
        if size > offset:
            with path.open("rb") as log:
                log.seek(offset)
                new = log.read(size - offset)
            complete = new[: new.rfind(b"\n") + 1]
            offset += len(complete)
            for line in complete.decode(errors="replace").splitlines():
                call.screen.out.print(Text(line))
        time.sleep(_FOLLOW_SECONDS)


def _facts(found: BrokerInfo) -> dict[str, object]:
    facts: dict[str, object] = to_json(found)
    return {"running": True, **facts}
