"""Enrichment from reference data: as it is when the batch runs, or as it was when the event happened."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from lodestream import Json, Kafka, Pipeline


def declared(folder: Path) -> Pipeline:
    pipeline = Pipeline("taxi")
    pipeline.bronze("events", Kafka("events"))
    about: dict[str, Any] = {"schema": "zone int, name string", "keys": "zone"}
    pipeline.reference("zones", str(folder / "zones.csv"), **about)
    pipeline.reference("zone_versions", str(folder / "zones.csv"), history=True, **about)

    @pipeline.silver(decode=Json("id bigint, zone int"))
    def now(events: DataFrame, zones: DataFrame) -> DataFrame:
        return events.join(zones, "zone", "left")

    @pipeline.silver(decode=Json("id bigint, zone int, at timestamp"))
    def then(events: DataFrame, zone_versions: DataFrame) -> DataFrame:
        known = zone_versions.withColumnRenamed("zone", "known")
        return events.join(
            known,
            (events["zone"] == known["known"])
            & (known["valid_from"].isNull() | (events["at"] >= known["valid_from"]))
            & (known["valid_to"].isNull() | (events["at"] < known["valid_to"])),
            "left",
        ).select("id", "name", "_lode")

    return pipeline


def test_reference_data_as_it_is_and_as_it_was(line: Callable[[Any], Any], tmp_path: Path) -> None:
    file = tmp_path / "zones.csv"
    file.write_text("zone,name\n1,Harbour\n2,Park\n3,Mill\n")
    made = line(declared(tmp_path))
    before = datetime.now(UTC)
    made.send({"id": 1, "zone": 1, "at": before.isoformat()}, {"id": 2, "zone": 9, "at": before.isoformat()})
    made.run()
    assert made.rows("silver.now", "id", "name") == [(1, "Harbour"), (2, None)]

    file.write_text("zone,name\n1,Old Harbour\n2,Park\n4,Quay\n")
    after = datetime.now(UTC) + timedelta(hours=1)
    made.send(*({"id": 10 + zone, "zone": zone, "at": before.isoformat()} for zone in (1, 2, 3, 4)))
    made.send(*({"id": 20 + zone, "zone": zone, "at": after.isoformat()} for zone in (1, 2, 3, 4)))
    made.run()
    assert (1, "Harbour") in made.rows("silver.now", "id", "name"), "a row is enriched once"
    assert (11, "Old Harbour") in made.rows("silver.now", "id", "name")
    assert made.rows("silver.then", "id", "name") == [
        (1, "Harbour"), (11, "Harbour"), (12, "Park"), (13, "Mill"), (14, None), (2, None),
        (21, "Old Harbour"), (22, "Park"), (23, None), (24, "Quay"),
    ]  # fmt: skip
    stored = made.spark.table("lode.silver.zone_versions")
    wanted = stored.selectExpr("zone", "name", "valid_from is null", "is_current").collect()
    versions = sorted(map(tuple, wanted))
    assert versions == [
        (1, "Harbour", True, False), (1, "Old Harbour", False, True), (2, "Park", True, True),
        (3, "Mill", True, False), (4, "Quay", False, True),
    ]  # fmt: skip
