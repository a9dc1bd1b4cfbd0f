"""Enrichment from reference data: as it is when the batch runs, or as it was when the event happened."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import col

from lodestream import Json, Kafka, Pipeline
from lodestream.contracts import Record, column
from lodestream.errors import ContractViolation, DeclarationError, SourceUnreadable


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


def dated(file: Path, **options: Any) -> Pipeline:
    pipeline = Pipeline("taxi")
    pipeline.bronze("events", Kafka("events"))
    about = {"schema": "zone int, name string, since date", "keys": "zone", "sequence_by": "since", "history": True}
    pipeline.reference("zones", str(file), **{**about, **options})

    @pipeline.silver(decode=Json("id bigint, zone int, at timestamp_ntz"))
    def trips(events: DataFrame, zones: DataFrame) -> DataFrame:
        then = zones.where("true").withColumnRenamed("zone", "known")
        begun = col("valid_from").isNull() | (col("at") >= col("valid_from"))
        lasts = col("valid_to").isNull() | (col("at") < col("valid_to"))
        return events.join(then, (events["zone"] == col("known")) & begun & lasts, "left").select("id", "name", "_lode")

    return pipeline


def test_a_history_by_the_files_own_dates(line: Callable[[Any], Any], tmp_path: Path) -> None:
    file = tmp_path / "zones.csv"
    file.write_text("zone,name,since\n1,Harbour,\n1,Old Harbour,2024-03-01\n2,Park,2024-01-01\n")
    made = line(dated(file))
    made.send(*({"id": month, "zone": 1, "at": f"2024-0{month}-15T00:00:00"} for month in (1, 2, 3)))
    made.send({"id": 4, "zone": 2, "at": "2023-12-31T23:59:59"})
    made.run()
    assert made.rows("silver.trips", "id", "name") == [
        (1, "Harbour"), (2, "Harbour"), (3, "Old Harbour"), (4, None),
    ]  # fmt: skip

    # Told late: a version in between. Of zone 2 the file knows only the newest, of zone 1 everything from February on.
    file.write_text("zone,name,since\n1,Docks,2024-02-01\n1,Quay,2024-03-01\n2,Garden,2024-06-01\n")
    made.send(*({"id": 10 + month, "zone": 1, "at": f"2024-0{month}-15T00:00:00"} for month in (1, 2, 3)))
    made.send({"id": 14, "zone": 2, "at": "2024-05-01T00:00:00"}, {"id": 15, "zone": 2, "at": "2024-06-01T00:00:00"})
    made.run()
    assert made.rows("silver.trips", "id", "name")[1:6] == [
        (11, "Harbour"), (12, "Docks"), (13, "Quay"), (14, "Park"), (15, "Garden"),
    ]  # fmt: skip
    versions = made.rows("silver.zones", "zone", "name", "cast(valid_from AS string)", "cast(valid_to AS string)")
    assert versions == [
        (1, "Docks", "2024-02-01", "2024-03-01"), (1, "Harbour", None, "2024-02-01"), (1, "Quay", "2024-03-01", None),
        (2, "Garden", "2024-06-01", None), (2, "Park", "2024-01-01", "2024-06-01"),
    ]  # fmt: skip
    assert made.rows("silver.zones", "zone", "name")[2] == (1, "Quay")

    # Without a history the last row by its date counts; another order is another table, so the file is read again.
    made.declare(dated(file, history=False, schema="zone int, name string, since string"))
    made.spark.sql("DROP TABLE lode.silver.zones")
    flow = made.flows()["silver.zones"]
    flow.step(10)
    assert made.rows("silver.zones", "zone", "name") == [(1, "Quay"), (2, "Garden")]


class Zones(Record):
    """What a file of zones must hold."""

    version = "1.0.0"
    owner = "tests"

    zone: int = column(key=True)
    name: str = column(min_length=2)


def test_a_reference_file_that_breaks_its_declaration_replaces_nothing(
    line: Callable[[Any], Any], tmp_path: Path
) -> None:
    file = tmp_path / "zones.csv"
    file.write_text("zone,name\n1,Harbour\n2,Park\n")
    pipeline = Pipeline("taxi")
    pipeline.reference("zones", str(file), contract=Zones)
    pipeline.reference("bad", str(file), schema="zone int, name string", keys="zone", sequence_by="zone", history=True)
    made = line(pipeline)
    flow = made.flows()["silver.zones"]
    flow.step(10)
    # The file's own order of columns counts, and an empty line is no row.
    file.write_text("name,zone\nH,1\n\nPark,1\n,3\n,4\n")
    with pytest.raises(ContractViolation) as refused:
        flow.step(10)
    assert str(refused.value) == (
        "silver.zones refused 3 of 4 rows of zones.csv\n"
        "  why: name is null in 2 rows (first in line 5), name is shorter than 2: H in 1 row (line 2), "
        'zone is not unique in 1 row ({"zone":1} in line 2 and line 4); contract zones 1.0.0 requires otherwise\n'
        "  fix: correct zones.csv; readers still see the rows before, and the next good version is taken by itself"
    )
    for broken, why in (
        ("name,zone\nPark,2\nx,y\nQuay\n", "line 3: zone is no bigint: y; line 4: 1 value for 2 columns (name, zone)"),
        ("nme,zone,zone\nx,1,1\n", "line 1: column zone comes 2 times; there is no column name (did you mean nme?)"),
    ):
        file.write_text(broken)
        with pytest.raises(SourceUnreadable, match=r"zones.csv") as unread:
            flow.step(10)
        assert str(unread.value.why).startswith(why)
    assert made.rows("silver.zones", "zone", "name") == [(1, "Harbour"), (2, "Park")]
    file.write_text("name,zone\nQuay,5\n")
    with pytest.raises(DeclarationError, match="keeps a history by zone, which is int"):
        made.flows()["silver.bad"].step(10)
    flow.step(10)
    assert made.rows("silver.zones", "zone", "name") == [(5, "Quay")], "columns are taken by their names"


class Named(Record):
    """A trip whose zone is known."""

    version = "1.0.0"
    owner = "tests"

    id: int = column(key=True)
    zone: int
    name: str = column()


def corrected(file: Path) -> Pipeline:
    pipeline = Pipeline("taxi")
    pipeline.bronze("events", Kafka("events"))
    pipeline.reference("zones", str(file), schema="zone int, name string", keys="zone")

    @pipeline.silver(
        decode=Json("id bigint, zone int, seq int, gone boolean"), keys="id", sequence_by="seq", delete_when="gone"
    )
    def trips(events: DataFrame) -> DataFrame:
        return events.select("id", "zone", "seq", "gone", "_lode")

    @pipeline.silver(contract=Named, corrected_by="zones")
    def named(trips: DataFrame, zones: DataFrame) -> DataFrame:
        return trips.select("id", "zone").join(zones, "zone", "left")

    return pipeline


def test_late_reference_data_corrects_the_rows_it_should(line: Callable[[Any], Any], tmp_path: Path) -> None:
    file = tmp_path / "zones.csv"
    file.write_text("zone,name\n1,Harbour\n2,Park\n3,Mill\n")
    made = line(corrected(file))
    made.send(*({"id": number, "zone": number, "seq": 1} for number in (1, 2, 3, 4, 5)))
    flows = made.flows()
    made.run(flows)
    assert made.rows("silver.named", "id", "name") == [(1, "Harbour"), (2, "Park"), (3, "Mill")]
    assert made.rows("silver.named__dead", "reasons") == [(["name is null"],)] * 2

    # One zone renamed, one taken away, one told late; meanwhile a trip moved and one is gone.
    file.write_text("zone,name\n1,Old Harbour\n2,Park\n4,Quay\n")
    made.send({"id": 2, "zone": 1, "seq": 2}, {"id": 1, "seq": 2, "gone": True}, {"id": 6, "zone": 1, "seq": 1})
    done = made.run(flows)
    assert made.rows("silver.named", "id", "name") == [(2, "Old Harbour"), (4, "Quay"), (6, "Old Harbour")]
    feed = "SELECT id, name, sum(_weight) FROM lode.silver.named__changes GROUP BY ALL HAVING sum(_weight) <> 0"
    assert sorted(map(tuple, made.spark.sql(feed).collect())) == [
        (2, "Old Harbour", 1), (4, "Quay", 1), (6, "Old Harbour", 1),
    ]  # fmt: skip
    # Trip 3 has lost its name, and has a letter now; trip 5 had one before, and no second.
    assert len(made.rows("silver.named__dead", "letter")) == 3
    assert [batch.rows["dead"] for batch in done["silver.named"]] == [1]

    # A change of the reference alone is a batch, and rows that stay as they are make no change.
    file.write_text("zone,name\n1,Old Harbour\n2,Park\n4,Pier\n")
    done = made.run(flows)
    counted = [(batch.rows["upserted"], batch.rows["deleted"]) for batch in done["silver.named"]]
    assert counted == [(1, 0)], "one row took another's place"
    assert made.run(flows)["silver.named"] == []
