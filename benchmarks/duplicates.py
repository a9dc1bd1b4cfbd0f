"""Whether finding duplicates costs what comes, not what is stored: the same events into ever larger tables.

benchmarks/duplicates.py --json                       0.1, 1 and 10 million rows, ours beside the stock way
benchmarks/duplicates.py --rows 10000,100000 --json   smaller

3 % of the events have come before. `dated` is partitioned by day and grows because time passes; its copies are of the
last three days. The other two are measured on a table without partitions: copies of the last 90,000 orders (`recent`)
and of any order (`anywhere`). Keys are random. `growth` is the largest one of the three; `cpu_growth` says it in
processor time, for a machine that has other work to do.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).parent))

from duplicate_ways.ours import Ours
from duplicate_ways.stock import Stock
from upsert_ways.changes import A_DAY
from upserts import SIZES, growth, in_turn, row_counts, say, settled

RECENT = 3 * A_DAY
# By the partitioning of the table: where the copies are looked for, as how many orders back.
TABLES: Mapping[str, Mapping[str, int]] = {
    "days(day)": {"dated": RECENT},
    "": {"recent": RECENT, "anywhere": 2**62},
}


@click.command()
@click.option("--rows", "sizes", default=SIZES, type=row_counts, show_default=True, help="Stored, smallest first.")
@click.option("--events", default=1000, show_default=True, help="Events in a batch.")
@click.option("--rounds", default=18, show_default=True, help="Batches into each table; the first third warms up.")
@click.option("--stock-rounds", default=3, show_default=True, help="Batches of the stock way; 0 leaves it out.")
@click.option("--only", type=click.Choice(["dated", "undated"]), help="One of the two tables.")
@click.option("--json", "as_json", is_flag=True, help="Print one object on standard output.")
def main(sizes: list[int], events: int, rounds: int, stock_rounds: int, only: str | None, as_json: bool) -> None:
    found: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(prefix="lode-duplicates-") as folder:
        for partition_by, reaches in TABLES.items():
            name = "dated" if partition_by else "undated"
            if only in (None, name):
                roots = {rows: Path(folder) / name / str(rows) for rows in sizes}
                found |= measured(partition_by, reaches, roots, events, rounds, stock_rounds)
    result = summed(found, events)
    print(json.dumps(result) if as_json else told(result))


def measured(
    partition_by: str, reaches: Mapping[str, int], roots: dict[int, Path], events: int, rounds: int, stock_rounds: int
) -> dict[str, list[dict[str, Any]]]:
    """The tables take turns, so that whatever else the machine does slows all of them."""
    ours: dict[int, Ours] = {}
    stock: dict[int, Stock] = {}
    for rows, root in roots.items():
        root.mkdir(parents=True)
        ours[rows] = Ours(root, rows, events, partition_by)
        if stock_rounds:  # now: a new session takes the catalog of the one that was started last
            stock[rows] = Stock(ours[rows].spark, rows, events, partition_by)
        say(f"{partition_by or 'no partitions'}, {rows:,} rows: filled")
    result: dict[str, list[dict[str, Any]]] = {}
    for name, reach in reaches.items():
        say(name)
        result[name] = [{"rows": rows, "ours": took} for rows, took in turns(ours, reach, rounds).items()]
        if stock_rounds:
            for one, took in zip(result[name], turns(stock, reach, stock_rounds).values(), strict=True):
                one["stock"] = took
    for one_of_ours in ours.values():
        one_of_ours.check()
    return result


def turns(ways: Mapping[int, Ours | Stock], reach: int, rounds: int) -> dict[int, dict[str, float]]:
    for one in ways.values():
        one.look_back(reach)
    took = in_turn({rows: one.batch for rows, one in ways.items()}, rounds)
    return {rows: settled(some) for rows, some in took.items()}


def summed(found: Mapping[str, list[dict[str, Any]]], events: int) -> dict[str, Any]:
    cases: dict[str, dict[str, Any]] = {}
    for name, sizes in found.items():
        stock = {"stock_growth": growth(sizes, "stock")} if "stock" in sizes[0] else {}
        cases[name] = {
            "growth": growth(sizes, "ours"), "cpu_growth": growth(sizes, "ours", "cpu"), **stock, "sizes": sizes,
        }  # fmt: skip
    return {
        "growth": max(one["growth"] for one in cases.values()),
        "cpu_growth": max(one["cpu_growth"] for one in cases.values()),
        "events": events,
        **cases,
    }


def told(result: dict[str, Any]) -> str:
    lines = []
    for name in [name for reaches in TABLES.values() for name in reaches]:
        for one in result.get(name, {}).get("sizes", ()):
            stock = f", the stock way {one['stock']['total']:.2f} s" if "stock" in one else ""
            lines.append(f"{name:>8} {one['rows']:>12,} rows: {one['ours']['total']:.2f} s a batch{stock}")
    return "\n".join([*lines, f"largest over smallest: {result['growth']}"])


if __name__ == "__main__":
    main()
