"""What the testing kit says and sends, without Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from lodestream import Kafka, Pipeline, clock
from lodestream.config import Config
from lodestream.errors import ConfigError
from lodestream.testing import NotMade, Sandbox
from lodestream.testing.encode import as_json, in_bytes
from lodestream.testing.reading import read_letters, read_rows


def made() -> Pipeline:
    found = Pipeline("shop")
    found.bronze("orders_raw", Kafka("orders"))

    @found.silver()
    def orders(orders_raw):  # type: ignore[no-untyped-def]
        return orders_raw

    return found


def test_an_unmade_table_is_no_empty_table(tmp_path: Path) -> None:
    graph = made().graph()
    with pytest.raises(NotMade, match=r"silver\.orders has not been made") as unmade:
        read_rows(Config(root=tmp_path), graph, "silver.orders")
    assert "bronze.orders_raw" in (unmade.value.why or "")
    with pytest.raises(NotMade) as misspelt:
        read_rows(Config(root=tmp_path), graph, "silver.order")
    assert misspelt.value.fix == "did you mean silver.orders?"
    with pytest.raises(NotMade) as refused:
        read_rows(Config(root=tmp_path), graph, "silver.orders__dead")
    assert refused.value.why == "no row of silver.orders was refused"
    with pytest.raises(NotMade):
        read_letters(Config(root=tmp_path), graph, "silver.orders")


def test_a_reference_table_that_was_left_out_is_named(tmp_path: Path) -> None:
    (tmp_path / "zones.csv").write_text("zone,name\n1,North\n")
    shop = made()
    shop.reference("zones", str(tmp_path / "zones.csv"), schema="zone int, name string")

    @shop.silver()
    def placed(orders, zones):  # type: ignore[no-untyped-def]
        return orders.join(zones, "zone")

    config = Config(root=tmp_path)
    config.state_dir.mkdir()
    place = {"uri": config.catalog_uri().removeprefix("jdbc:"), "warehouse": config.warehouse()}
    catalog = load_catalog(config.catalog.name, type="sql", **place)
    rows = pa.table({"zone": [1]})
    for name in ("bronze.orders_raw", "silver.orders"):
        catalog.create_namespace_if_not_exists(name.partition(".")[0])
        catalog.create_table(name, rows.schema).append(rows)
    with pytest.raises(NotMade) as unmade:
        read_rows(config, shop.graph(), "silver.placed")
    assert str(unmade.value) == (
        "silver.placed has not been made\n"
        "  why: it is made from silver.zones, which has not been made\n"
        '  fix: call run(), or run(only=["silver.zones", "silver.placed"]); '
        'or put rows into it first: given("silver.zones", rows)'
    )
    catalog.create_table("silver.zones", rows.schema).append(rows)
    with pytest.raises(NotMade) as unmade:
        read_rows(config, shop.graph(), "silver.placed")
    assert unmade.value.why == "nothing has run yet"


def test_wrong_names_are_told_before_spark_starts(tmp_path: Path) -> None:
    box = Sandbox(made(), tmp_path)
    with pytest.raises(ConfigError, match="declares no table"):
        box.given("bronze.orders", [{}])
    with pytest.raises(ConfigError, match="'publsh'") as unknown:
        box.kill_at("publsh", "silver.orders")
    assert "publish" in (unknown.value.fix or "")
    with pytest.raises(ConfigError, match="no batch to replay"):
        box.replay_last_batch()


def test_values_are_sent_digit_by_digit() -> None:
    row = {"a": Decimal("12345678901234567.10"), "b": [date(2024, 1, 2), None, True], "c": {"ü": "x\n"}, "d": 1.5}
    assert as_json(row) == (
        '{"a": 12345678901234567.10, "b": ["2024-01-02", null, true], "c": {"\\u00fc": "x\\n"}, "d": 1.5}'
    )
    assert as_json(datetime(2024, 1, 2, 3, 4, tzinfo=UTC)) == '"2024-01-02T03:04:00+00:00"'
    assert [in_bytes(value) for value in (None, b"\x00", "ü", 1)] == [None, b"\x00", "ü".encode(), b"1"]


def test_the_clock_stands_still_and_goes_on() -> None:
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    clock.freeze(moment)
    assert clock.now() == moment
    clock.freeze(None)
    assert clock.now() > moment
    with pytest.raises(ValueError, match="says no zone"):
        clock.freeze(datetime(2024, 1, 1))
