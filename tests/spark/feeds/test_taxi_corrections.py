"""The taxi example with corrections on: trips and their measures are what DuckDB makes of all events."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from counted import Counted

from lodestream.engine.build import Builder
from lodestream.engine.project import Project
from lodestream.flows.bronze import BronzeFlow
from lodestream.pipeline import load_pipeline
from lodestream.sources.kafka import BRONZE_DDL
from lodestream.tables.lake import Lake
from lodestream.tables.order import plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lodestream.sources.source import Position

EXAMPLE = Path(__file__).parents[3] / "examples" / "nyc_taxi"
sys.path[:0] = [str(EXAMPLE), str(Path(__file__).parents[2])]
pytest.register_assert_rewrite("taxi_oracle")

from generator import Dirt, events  # noqa: E402

from taxi_oracle import TaxiOracle, rows_by_id  # noqa: E402

DIRT = Dirt(duplicates=0.05, late=0.02, out_of_order=0.05, corrections=0.15, deletes=0.05, malformed=0.01)
STEPS = (700, 1500, 3000)


class Trips(Counted):
    """Events in a file, by their offsets."""

    def __init__(self, spark: SparkSession, file: Path) -> None:
        self._spark = spark
        self._file = file
        self.end = 0

    def read(self, since: Position, to: Position) -> DataFrame:
        rows = self._spark.read.parquet(f"file:{self._file}")
        return rows.where(f"offset >= {since['next']} AND offset < {to['next']}").selectExpr(
            "cast(null AS binary) AS key",
            "value",
            "cast(null AS array<struct<key:string,value:binary>>) AS headers",
            "'taxi.trips' AS topic",
            "0 AS partition",
            "offset",
            "timestamp '2024-02-01' AS timestamp",
        )


def test_trips_and_their_measures_follow_corrections_and_deletes(
    lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [value for batch in events(STEPS[-1], 3, DIRT) for value in batch.values.to_pylist()]
    file = tmp_path / "events.parquet"
    pq.write_table(pa.table({"value": pa.array(values, pa.binary()), "offset": range(len(values))}), file)
    monkeypatch.setenv("TAXI_CORRECTIONS", "1")
    pipeline = load_pipeline("pipeline.py", EXAMPLE)
    graph = pipeline.graph()
    builder = Builder(Project(lake.config, pipeline, graph), lake.spark, "run1", "nowhere:1")
    own = Lake(lake.spark.newSession(), "lode")
    source = Trips(own.spark, file)
    bronze = BronzeFlow(own, graph["bronze.trips_raw"], "run1", source, BRONZE_DDL)
    followers = [builder.flow(graph[name]) for name in ("silver.trips", "silver.trip_metrics")]
    for source.end in STEPS:
        for flow in (bronze, *followers):
            while flow.step(10_000) is not None:
                pass
    oracle = TaxiOracle.of(values)
    assert oracle.count("op = 'd'") > 100
    for name in ("trips", "trip_metrics"):
        kept = plain(lake.spark.table(f"lode.silver.{name}"))
        wanted = oracle.table(name, ", ".join(kept.columns))
        assert rows_by_id(kept.toArrow()) == rows_by_id(wanted)
