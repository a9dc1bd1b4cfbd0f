"""Whether an upsert costs what changes, not what is stored: the same changes into ever larger tables.

benchmarks/upserts.py --json                       0.1, 1 and 10 million rows, ours beside the stock way
benchmarks/upserts.py --rows 10000,100000 --json   smaller

Two tables are measured. `dated` is partitioned by day and grows because time passes; its updates and deletes are of the
last three days. `undated` has no partitions, and its updates and deletes are of any row. Keys are random in both.
`growth` is the larger one of the two; `cpu_growth` says it in processor time, for a machine that has other work to do.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).parent))

from upsert_ways.changes import A_DAY
from upsert_ways.ours import Ours
from upsert_ways.stock import Stock


@dataclass(frozen=True)
class Case:
    name: str
    partition_by: str
    reach: int


CASES = (Case("dated", "days(day)", 3 * A_DAY), Case("undated", "", 2**62))


SIZES = "100000,1000000,10000000"


def row_counts(text: str) -> list[int]:
    """Numbers of rows, smallest first: growth is the last one's time over the first one's."""
    counts = [int(one) if one.strip().isdecimal() else 0 for one in text.split(",")]
    if 0 in counts or sorted(set(counts)) != counts:
        raise click.BadParameter(f"{text!r} is not a list of row counts that grow, such as {SIZES}")
    return counts


@click.command()
@click.option("--rows", "sizes", default=SIZES, type=row_counts, show_default=True, help="Stored, smallest first.")
@click.option("--changes", default=1000, show_default=True, help="Changes in a batch.")
@click.option("--rounds", default=18, show_default=True, help="Batches into each table; the first third warms up.")
@click.option("--stock-rounds", default=3, show_default=True, help="Batches of the stock way; 0 leaves it out.")
@click.option("--only", type=click.Choice(["dated", "undated"]), help="One of the two tables.")
@click.option("--json", "as_json", is_flag=True, help="Print one object on standard output.")
def main(sizes: list[int], changes: int, rounds: int, stock_rounds: int, only: str | None, as_json: bool) -> None:
    found: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(prefix="lode-upserts-") as folder:
        for case in CASES:
            if only in (None, case.name):
                roots = {rows: Path(folder) / case.name / str(rows) for rows in sizes}
                found[case.name] = measured(case, roots, changes, rounds, stock_rounds)
    result = summed(found, changes)
    print(json.dumps(result) if as_json else told(result))


def measured(case: Case, roots: dict[int, Path], changes: int, rounds: int, stock_rounds: int) -> list[dict[str, Any]]:
    """The tables take turns, so that whatever else the machine does slows all of them."""
    ours: dict[int, Ours] = {}
    stock: dict[int, Stock] = {}
    for rows, root in roots.items():
        root.mkdir(parents=True)
        ours[rows] = Ours(root, rows, case.reach, changes, case.partition_by)
        if stock_rounds:  # now: a new session takes the catalog of the one that was started last
            stock[rows] = Stock(ours[rows].spark, rows, case.reach, changes, case.partition_by)
        say(f"{case.name}, {rows:,} rows: filled")
    took = in_turn({rows: one.batch for rows, one in ours.items()}, rounds)
    result = [{"rows": rows, "ours": settled(took[rows])} for rows in roots]
    for one in ours.values():
        one.check()
    if stock_rounds:
        took = in_turn({rows: one.batch for rows, one in stock.items()}, stock_rounds)
        for one in result:
            one["stock"] = settled(took[one["rows"]])
    return result


def in_turn(ways: dict[int, Callable[[], dict[str, float]]], rounds: int) -> dict[int, list[dict[str, float]]]:
    took: dict[int, list[dict[str, float]]] = {rows: [] for rows in ways}
    for number in range(rounds):
        for rows, batch in ways.items():
            took[rows].append(batch())
        say(f"  batch {number + 1} of {rounds}: " + ", ".join(f"{took[rows][-1]['total']:.2f} s" for rows in ways))
    return took


def settled(took: list[dict[str, float]]) -> dict[str, float]:
    """The median of each step once the first third has warmed up, in seconds."""
    kept = took[len(took) // 3 :]
    return {name: round(statistics.median(one.get(name, 0.0) for one in kept), 3) for name in kept[-1]}


def summed(found: dict[str, list[dict[str, Any]]], changes: int) -> dict[str, Any]:
    grown = {name: growth(sizes, "ours") for name, sizes in found.items()}
    worked = {name: growth(sizes, "ours", "cpu") for name, sizes in found.items()}
    result: dict[str, Any] = {"growth": max(grown.values()), "cpu_growth": max(worked.values()), "changes": changes}
    for name, sizes in found.items():
        stock = {"stock_growth": growth(sizes, "stock")} if "stock" in sizes[0] else {}
        result[name] = {"growth": grown[name], "cpu_growth": worked[name], **stock, "sizes": sizes}
    return result


def growth(sizes: list[dict[str, Any]], way: str, measure: str = "total") -> float:
    """The largest table's batch over the smallest one's."""
    return round(float(sizes[-1][way][measure] / sizes[0][way][measure]), 2)


def told(result: dict[str, Any]) -> str:
    lines = []
    for case in CASES:
        for one in result.get(case.name, {}).get("sizes", ()):
            stock = f", the stock way {one['stock']['total']:.2f} s" if "stock" in one else ""
            lines.append(f"{case.name:>8} {one['rows']:>12,} rows: {one['ours']['total']:.2f} s a batch{stock}")
    return "\n".join([*lines, f"largest over smallest: {result['growth']}"])


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
