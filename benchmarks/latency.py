"""Seconds from the broker to Gold over three hops: ours beside stock Structured Streaming, in one run.

Both keep the same three tables: every Kafka record appended to Bronze, parsed and typed into Silver, counted and summed
per zone into Gold. An event is visible when the first Gold snapshot that contains it became the table's head; which
events a snapshot contains is read from the table itself (the sum of its counts), the same way for both. Event time is
the broker's own timestamp (LogAppendTime).

    benchmarks/latency.py --json --warmup 60 --measure 120 --rate 1000
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyiceberg.catalog import load_catalog

from lodestream.config import load_config
from lodestream.observe import BatchPublished, read_events
from lodestream.runtime.broker import start_broker, stop_broker

HOPS = Path(__file__).with_name("latency_hops")
SYSTEMS = ("ours", "stock", "stock_tuned")
TIERS = ("bronze.events_raw", "silver.events", "gold.by_zone")


@dataclass(frozen=True, slots=True)
class Measured:
    """One system's measured seconds, one number per event, and what each hop took."""

    seconds: np.ndarray
    hops: dict[str, Any]
    commits: int


@click.command()
@click.option("--warmup", default=60.0, show_default=True, help="Seconds before measuring.")
@click.option("--measure", default=120.0, show_default=True, help="Seconds measured.")
@click.option("--rate", default=1000, show_default=True, help="Events a second.")
@click.option("--rounds", default=1, show_default=True, help="How often each system runs, in turn.")
@click.option("--tuned", is_flag=True, help="Also run the peer with the settings that our engine gives small batches.")
@click.option("--only", type=click.Choice(SYSTEMS), help="Run one system alone.")
@click.option("--json", "as_json", is_flag=True, help="Print one object on standard output.")
def main(warmup: float, measure: float, rate: int, rounds: int, tuned: bool, only: str | None, as_json: bool) -> None:
    wanted = (only,) if only else SYSTEMS if tuned else SYSTEMS[:2]
    found: dict[str, list[Measured]] = {name: [] for name in wanted}
    with tempfile.TemporaryDirectory(prefix="lode-latency-") as folder:
        home = Path(folder)
        config = load_config(home)
        broker = start_broker(config)
        try:
            for number in range(rounds):
                for name in found:
                    tell(f"round {number + 1} of {rounds}: {name}, {warmup:.0f} s warm-up, {measure:.0f} s measured")
                    found[name].append(run(home / f"{name}-{number}", name, broker.bootstrap, warmup, measure, rate))
        finally:
            stop_broker(config)
    result = summary(found, {"warmup": warmup, "measure": measure, "rate": rate, "rounds": rounds})
    print(json.dumps(result) if as_json else readable(result))


def run(root: Path, name: str, bootstrap: str, warmup: float, measure: float, rate: int) -> Measured:
    topic = f"events-{root.name}"
    make_project(root, topic, bootstrap)
    make_topic(bootstrap, topic)
    producer = spawn(HOPS / "producer.py", bootstrap, topic, str(rate), str(warmup + measure + 600))
    script, _, variant = name.partition("_")
    system = spawn(HOPS / f"{script}.py", str(root), topic, bootstrap, *filter(None, [variant]))
    try:
        wait_for_gold(root, system)
        watch("warm-up", warmup, system)
        begin = time.time()
        watch("measuring", measure, system)
        end = time.time()
        time.sleep(10)  # what was produced at the end still has to arrive
    finally:
        stop(system)
        stop(producer)
    arrived = broker_times(bootstrap, topic)
    published = gold_publications(root)
    visible = visible_at(published, len(arrived))
    wanted = (arrived >= begin) & (arrived < end) & np.isfinite(visible)
    missing = int(((arrived >= begin) & (arrived < end)).sum() - wanted.sum())
    if missing:
        tell(f"{name}: {missing:,} measured events never reached Gold; they are left out, which flatters it")
    shutil.rmtree(root / ".lode" / "warehouse", ignore_errors=True)
    return Measured(visible[wanted] - arrived[wanted], hop_times(root), len(published))


def make_project(root: Path, topic: str, bootstrap: str) -> None:
    root.mkdir(parents=True)
    text = (HOPS / "pipeline.py").read_text(encoding="utf-8").replace("TOPIC", topic)
    (root / "pipeline.py").write_text(text, encoding="utf-8")
    (root / "lode.toml").write_text(f'pipeline = "pipeline.py"\n[profiles.local.kafka]\nbootstrap = "{bootstrap}"\n')


def make_topic(bootstrap: str, topic: str) -> None:
    # The broker's clock stamps each record, so producer and measurement cannot disagree.
    stamped = NewTopic(topic, 1, 1, config={"message.timestamp.type": "LogAppendTime"})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([stamped]).values():
        future.result()


def spawn(script: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(script), *arguments], stdout=sys.stderr)


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()


def wait_for_gold(root: Path, system: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        if system.poll() is not None:
            raise SystemExit(f"the system under test ended with {system.returncode}")
        try:
            if gold_publications(root):
                return
        except Exception:
            pass
        time.sleep(1)
    raise SystemExit("no Gold rows after four minutes")


def watch(what: str, seconds: float, system: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if system.poll() is not None:
            raise SystemExit(f"the system under test ended with {system.returncode}")
        tell(f"  {what}: {left:.0f} s left")
        time.sleep(min(10, left))


def broker_times(bootstrap: str, topic: str) -> np.ndarray:
    """The broker's timestamp of each record, by offset, in seconds."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "latency", "enable.auto.commit": False})
    partition = TopicPartition(topic, 0, 0)
    _, end = consumer.get_watermark_offsets(partition, timeout=10)
    consumer.assign([partition])
    times = np.full(end, np.nan)
    read = 0
    while read < end:
        for message in consumer.consume(10_000, timeout=10):
            times[message.offset()] = message.timestamp()[1] / 1000
            read = message.offset() + 1
    consumer.close()
    return times


def gold_publications(root: Path) -> list[tuple[float, int]]:
    """(when it became the head, events it contains) of every Gold snapshot that was ever published."""
    state = root / ".lode"
    catalog = load_catalog("lode", type="sql", uri=f"sqlite:///{state}/catalog.db", warehouse=str(state / "warehouse"))
    table = catalog.load_table(TIERS[2])
    published = []
    for entry in table.metadata.snapshot_log:
        counts = table.scan(snapshot_id=entry.snapshot_id, selected_fields=("n",)).to_arrow()["n"]
        published.append((entry.timestamp_ms / 1000, sum(counts.to_pylist())))
    return [one for one in published if one[1]]


def visible_at(published: Sequence[tuple[float, int]], events: int) -> np.ndarray:
    """Event i (by offset) is visible with the first publication that contains more than i events."""
    ordered = sorted(published)
    contained = np.array([count for _, count in ordered])
    moments = np.array([moment for moment, _ in ordered] + [np.inf])
    return moments[np.searchsorted(contained, np.arange(events), side="right")]


def hop_times(root: Path) -> dict[str, Any]:
    """Medians of what each hop took, from our event log; empty for the peer."""
    found: dict[str, list[dict[str, float]]] = {}
    for event in read_events(root / ".lode", BatchPublished):
        found.setdefault(event.table or "", []).append({**event.ms, "rows": event.rows.get("in", 0)})
    return {
        table: {key: round(float(np.median([one[key] for one in steps[len(steps) // 3 :]])), 1) for key in steps[0]}
        for table, steps in found.items()
    }


def summary(found: dict[str, list[Measured]], settings: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, rounds in found.items():
        seconds = np.concatenate([one.seconds for one in rounds])
        quantiles = {f"p{q}": round(float(np.percentile(seconds, q)), 3) for q in (50, 90, 99)}
        result[name] = {**quantiles, "events": len(seconds), "commits": sum(one.commits for one in rounds)}
    if "ours" in found and "stock" in found:
        result["ratio"] = {q: round(result["stock"][q] / result["ours"][q], 2) for q in ("p50", "p90", "p99")}
    hops = found["ours"][-1].hops if found.get("ours") else {}
    return {**result, "hops_ms": hops, "settings": settings}


def readable(result: dict[str, Any]) -> str:
    lines = [f"{name}: p50 {result[name]['p50']} s, p99 {result[name]['p99']} s" for name in SYSTEMS if name in result]
    if "ratio" in result:
        lines.append(f"stock takes {result['ratio']['p50']} times as long (p50), {result['ratio']['p99']} times (p99)")
    return "\n".join(lines)


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
