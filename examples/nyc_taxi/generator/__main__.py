"""`python -m generator`: taxi events to a Kafka topic, or to standard output."""

from __future__ import annotations

import io
import json
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import BinaryIO

import click

from lodestream.errors import LodeError

from .counts import Counts
from .dirt import Dirt
from .draws import BLOCK
from .events import Batch, events, expected
from .month import MONTH_TRIPS
from .pace import Outlet, fixed_rate, real_time, stream
from .produce import DeliveryFailed, ensure_topic, open_sender
from .tlc import NotTripData, replay
from .wire import Format, encoder

_SHARE = click.FloatRange(0, 0.9)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--events", "number", type=click.IntRange(1), help="How many events; without it, endless.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Same seed, same bytes.")
@click.option("--mode", type=click.Choice(["burst", "rate", "realtime"]), default="burst")
@click.option("--rate", type=click.FloatRange(0, min_open=True), default=1_000.0, help="Events a second (--mode rate).")
@click.option(
    "--speed", type=click.FloatRange(0, min_open=True), default=1.0, help="Times the clock (--mode realtime)."
)
@click.option(
    "--lap", type=click.IntRange(1), help="Events per walk through the month; default: --events, or 2,964,624."
)
@click.option("--start-at", type=click.IntRange(0), default=0, help="Skip the events before this one.")
@click.option("--duplicates", type=_SHARE, default=0.0, help="Share of exact copies.")
@click.option("--late", type=_SHARE, default=0.0, help="Share that is 10 minutes to 21 hours late.")
@click.option("--out-of-order", type=_SHARE, default=0.0, help="Share that is up to 10 minutes late.")
@click.option("--corrections", type=_SHARE, default=0.0, help="Share that corrects an earlier trip.")
@click.option("--deletes", type=_SHARE, default=0.0, help="Share that deletes an earlier trip.")
@click.option("--malformed", type=_SHARE, default=0.0, help="Share that no reader can use.")
@click.option(
    "--tlc", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Replay this TLC parquet file."
)
@click.option("--bootstrap", help="Kafka brokers, host:port; without it, one event a line on standard output.")
@click.option("--topic", default="taxi.trips")
@click.option("--partitions", type=click.IntRange(1), default=1, help="Of the topic, when it is created.")
@click.option("--format", "form", type=click.Choice(["json", "avro", "protobuf"]), default="json")
@click.option("--registry", help="Address of the schema registry (--format avro or protobuf).")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def main(
    number: int | None,
    seed: int,
    mode: str,
    rate: float,
    speed: float,
    lap: int | None,
    start_at: int,
    tlc: Path | None,
    bootstrap: str | None,
    topic: str,
    partitions: int,
    form: Format,
    registry: str | None,
    as_json: bool,
    **shares: float,
) -> None:
    """Make New York taxi trips of January 2024 and send them to Kafka.

    Example: python -m generator --events 100000 --bootstrap localhost:9092 --duplicates 0.01
    """
    try:
        dirt = Dirt(**shares)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if tlc and (any(shares.values()) or start_at):
        raise click.UsageError("--tlc replays the file as it is: it takes no dirt and no --start-at")
    if form != "json" and (tlc or not (registry and bootstrap)):
        raise click.UsageError(f"--format {form} needs --registry and --bootstrap, and makes its own trips (no --tlc)")
    chunk = BLOCK if mode == "burst" else 1_024
    schedule = {"burst": None, "rate": fixed_rate(rate), "realtime": real_time(speed)}[mode]
    end = None if number is None else start_at + number
    lap = lap or end or MONTH_TRIPS
    try:
        batches = (
            replay(tlc, limit=number, chunk=chunk)
            if tlc
            else events(end, seed, dirt, start_at=start_at, chunk=chunk, lap=lap, encode=encoder(form, registry, topic))
        )
        outlet = _open(bootstrap, topic, partitions)
        began = time.perf_counter()
        sent = stream(batches, outlet, schedule, _stop_on_signal())
    except (DeliveryFailed, NotTripData, LodeError) as error:
        raise click.ClickException(str(error)) from error
    seconds = time.perf_counter() - began
    counts = _count_replayed(tlc, sent) if tlc else expected(start_at + sent, seed, dirt, start_at=start_at, lap=lap)
    _report(counts, seconds, as_json, to_stderr=bootstrap is None)


def _open(bootstrap: str | None, topic: str, partitions: int) -> Outlet:
    if bootstrap is None:
        # With PYTHONUNBUFFERED, standard output is a raw stream: a full pipe would take a part and drop the rest.
        out = sys.stdout.buffer
        return Lines(io.BufferedWriter(out) if isinstance(out, io.RawIOBase) else out)
    ensure_topic(bootstrap, topic, partitions)
    return open_sender(bootstrap, topic)


def _stop_on_signal() -> Event:
    """Ctrl-C ends the stream after the events already handed over, so the summary is true."""
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop


def _count_replayed(path: Path, sent: int) -> Counts:
    return sum((batch.counts for batch in replay(path, limit=sent)), Counts())


def _report(counts: Counts, seconds: float, as_json: bool, to_stderr: bool) -> None:
    """To standard error when the events themselves went to standard output."""
    facts = {**counts.as_dict(), "seconds": round(seconds, 3), "events_per_s": round(counts.events / seconds)}
    if as_json:
        click.echo(json.dumps(facts), err=to_stderr)
        return
    click.echo(f"{counts.events:,} events in {seconds:.1f} s ({facts['events_per_s']:,} a second)", err=to_stderr)
    for name, value in counts.as_dict().items():
        if value and name != "events":
            click.echo(f"  {name.replace('_', ' '):<20}{value:>12,}", err=to_stderr)


@dataclass(slots=True)
class Lines:
    """One event a line on a byte stream."""

    out: BinaryIO
    sent: int = 0

    def send(self, batch: Batch, start: int = 0, stop: int | None = None) -> None:
        values = batch.values[start:stop].to_pylist()
        self.out.write(b"\n".join(values) + b"\n")
        self.sent += len(values)

    def idle(self) -> None:
        self.out.flush()

    def close(self) -> None:
        self.out.flush()


if __name__ == "__main__":
    main(prog_name="python -m generator")
