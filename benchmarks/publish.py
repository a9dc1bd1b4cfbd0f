"""What the one rule costs: stage on a branch and fast-forward, over a plain append of the same rows.

benchmarks/publish.py --json --batches 60 --rows 1000
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click
from pyspark.sql import DataFrame

from lodestream.config import load_config
from lodestream.flows.context import Tuning
from lodestream.runtime.session import start_session
from lodestream.tables.lake import Lake
from lodestream.tables.publish import Writer
from lodestream.tables.snapshot import Stamp

COLUMNS = "id BIGINT, zone INT, fare DECIMAL(10,2)"


def timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


@click.command()
@click.option("--batches", default=60, show_default=True, help="Batches of each kind, in turn.")
@click.option("--rows", default=1000, show_default=True, help="Rows in a batch.")
@click.option("--json", "as_json", is_flag=True, help="Print one object on standard output.")
def main(batches: int, rows: int, as_json: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="lode-publish-") as folder:
        spark = start_session(load_config(Path(folder)), app_name="publish").newSession()
        Tuning(spark).fit(rows)
        lake = Lake(spark, "lode")
        frame = spark.range(rows).selectExpr("id", "int(id % 265) AS zone", "cast(id AS decimal(10,2)) AS fare")
        frame = frame.coalesce(1)
        plain, ours = appending(lake, frame), publishing(lake, frame)
        took: dict[str, list[float]] = {"plain": [], "ours": []}
        for number in range(batches):
            took["plain"].append(timed(plain))
            took["ours"].append(timed(ours))
            if number % 10 == 0:
                print(f"  batch {number} of {batches}", file=sys.stderr, flush=True)
        spark.stop()
    settled = {name: statistics.median(values[len(values) // 3 :]) for name, values in took.items()}
    extra = settled["ours"] - settled["plain"]
    result = {"plain_ms": round(settled["plain"], 1), "ours_ms": round(settled["ours"], 1), "extra_ms": round(extra, 1)}
    print(json.dumps(result) if as_json else f"publishing costs {extra:.0f} ms over a plain append")


def appending(lake: Lake, frame: DataFrame) -> Callable[[], None]:
    lake.open("bench.plain", COLUMNS)
    return lambda: frame.writeTo(lake.identifier("bench.plain")).append()


def publishing(lake: Lake, frame: DataFrame) -> Callable[[], None]:
    writer = Writer(lake.open("bench.ours", COLUMNS), "bench")
    numbers = iter(range(1, 1_000_000))

    def publish() -> None:
        base = writer.begin()
        number = next(numbers)
        positions = {"kafka": {"events": {"id": "topic", "offsets": {"0": number * 1000}}}}
        stamp = Stamp("bench.ours", "bench", number, positions, base.stamp.positions if base.stamp else None)
        staged = writer.stage(base, stamp, lambda branch, facts: lake.append("bench.ours", frame, branch, facts))
        writer.publish(staged)

    return publish


if __name__ == "__main__":
    main()
