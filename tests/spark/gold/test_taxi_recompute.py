"""The taxi pipeline after 100,000 events with all dirt, corrections and deletes: Gold equals DuckDB, to the cent.

`LODE_TAXI_BATCHES=1,7,100` runs it in as many batches; three by default.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "nyc_taxi"
sys.path[:0] = [str(EXAMPLE), str(Path(__file__).parents[2])]

from generator import ALL_DIRT, events  # noqa: E402
from taxi_gold_oracle import TABLES, differs_from_published, recompute  # noqa: E402
from wire import Wire, Works  # noqa: E402

from lodestream.config import load_config  # noqa: E402
from lodestream.planning.project import open_project  # noqa: E402
from taxi_oracle import TaxiOracle  # noqa: E402

EVENTS = int(os.environ.get("LODE_TAXI_EVENTS", "100000"))
BATCHES = [int(one) for one in os.environ.get("LODE_TAXI_BATCHES", "3").split(",")]


@pytest.mark.usefixtures("summer_time")
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("batches", BATCHES)
def test_taxi_gold_equals_a_recompute(lake: Any, tmp_path: Path, batches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAXI_CORRECTIONS", "1")
    folder = tmp_path / "taxi"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".lode", "exports", "__pycache__"))
    project = open_project(load_config(folder))
    values = pa.concat_arrays([batch.values for batch in events(EVENTS, 17, ALL_DIRT)])
    wire = Wire(values)
    works = Works(lake.config, lake.spark, (project.pipeline, project.graph), {"bronze.trips_raw": wire})
    for number in range(1, batches + 1):
        wire.end = EVENTS * number // batches
        works.settle()
    oracle = TaxiOracle.of(values.to_pylist()).connection
    wanted = recompute(oracle, EXAMPLE / "reference")
    held = {name: [row.asDict() for row in works.rows(f"gold.{name}").collect()] for name in TABLES}
    wrong = {name: _difference(held[name], wanted[name]) for name in TABLES}
    assert not {name: found for name, found in wrong.items() if found}
    assert differs_from_published(oracle, held) == []


def _difference(ours: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> Any:
    columns = set(ours[0]) if ours else set()
    if columns != set(wanted[0]):
        return columns ^ set(wanted[0])
    if "trips_z_score" in columns and (apart := _scores_differ(ours, wanted)):
        return apart
    held, asked = Counter(map(_settled, ours)), Counter(map(_settled, wanted))
    return () if held == asked else (list((held - asked).elements())[:2], list((asked - held).elements())[:2])


def _settled(row: dict[str, Any]) -> tuple[Any, ...]:
    """In the order of the names. Scores are made of doubles, whose last digit depends on the order of adding."""
    return tuple((name, _plain(value)) for name, value in sorted(row.items()) if not name.endswith("_z_score"))


def _scores_differ(ours: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> list[Any]:
    asked = {row["pickup_date"]: row for row in wanted}
    pairs = [(row[name], asked[row["pickup_date"]][name]) for row in ours for name in row if name.endswith("_z_score")]
    return [pair for pair in pairs if pair != (None, None) and (None in pair or abs(pair[0] - pair[1]) > 0.011)]


def _plain(value: Any) -> Any:
    return value.normalize() if isinstance(value, Decimal) else value
