"""Limits, lateness and files, from the raw bytes to the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from silver_line import ARRIVED, SilverLine, balanced

from lodestream import Csv, Files, Json, Kafka, Pipeline
from lodestream.contracts import Contract, Field, Threshold, contract_yaml, rule
from lodestream.errors import ContractViolation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.usefixtures("size")
Make = Callable[[Pipeline], SilverLine]
ORDERS, DEAD = "silver.orders", "silver.orders__dead"
CONTRACT = Contract(
    "orders",
    "2.1.0",
    (Field("id", "bigint", required=True), Field("at", "timestamp"), Field("cents", "bigint", required=True)),
    limit=Threshold.parse("5 % over 1 min"),
    event_time="at",
    lateness=3600.0,
)


def shop(folder: Path, contract: Contract, **options: Any) -> Pipeline:
    file = folder / "order.yaml"
    file.write_text(contract_yaml(contract))
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))

    @pipeline.silver(decode=Json(), contract=file, **options)
    def orders(events: DataFrame) -> DataFrame:
        return events

    return pipeline


def events(first: int, last: int, bad: int) -> list[dict[str, int]]:
    """So many events, the first of which lack their amount."""
    return [{"id": number} | ({"cents": 5} if number >= first + bad else {}) for number in range(first, last)]


def test_above_the_limit_the_batch_is_kept_and_not_published(line: Make, tmp_path: Path) -> None:
    shop_line = line(shop(tmp_path, CONTRACT))
    shop_line.send(*events(0, 100, bad=3))
    flows = shop_line.flows()
    (first,) = shop_line.run(flows)[ORDERS]
    assert (first.rows["out"], first.rows["dead"]) == (97, 3), "3 % is within the limit"
    shop_line.send(*events(100, 200, bad=9))
    flows["bronze.events"].step(1000)
    with pytest.raises(ContractViolation, match="refused 12 of 200 rows over 1 min"):
        flows[ORDERS].step(1000)
    # A run that begins now knows what the one before it refused.
    with pytest.raises(ContractViolation) as refused:
        shop_line.flows()[ORDERS].step(1000)
    assert str(refused.value) == (
        "silver.orders refused 12 of 200 rows over 1 min (6 %, limit 5 %)\n"
        "  why: cents is null in 9 rows; contract orders 2.1.0 requires it\n"
        "  fix: lode dead show silver.orders --batch 2, then lode dead replay silver.orders; "
        "the batch is kept: read silver.orders.branch_failed_2"
    )
    assert len(shop_line.column(ORDERS, "id")) == 97, "nothing of the batch was published"
    kept = shop_line.spark.table(f"lode.{ORDERS}.branch_failed_2")
    assert kept.count() == 97 + 91
    # Once the contract allows it, the same batch is published, and its letters are there once.
    shop_line.declare(shop(tmp_path, replace(CONTRACT, limit=Threshold.parse("10 %"))))
    (second,) = shop_line.run()[ORDERS]
    assert balanced([second])
    assert shop_line.column(ORDERS, "id") == [*range(3, 100), *range(109, 200)]
    assert shop_line.column(DEAD, "offset") == [*range(3), *range(100, 109)]


def test_a_rule_is_counted_over_its_time_also_across_a_restart(line: Make, tmp_path: Path) -> None:
    paid = rule("is paid", "cents > 0", "fail above 5 % over 1 min")
    other = rule("is paid in time", "id <> 50")  # breaks for one row, which does not count against the first
    shop_line = line(shop(tmp_path, replace(CONTRACT, limit=None, rules=(paid, other))))
    for first, bad in ((0, 4), (100, 9)):
        shop_line.send(*({"id": number, "cents": int(number >= first + bad)} for number in range(first, first + 100)))
        flows = shop_line.flows()
        flows["bronze.events"].step(1000)
        if bad == 4:
            assert flows[ORDERS].step(1000) is not None
    with pytest.raises(ContractViolation, match=r"refused 13 of 200 rows over 1 min \(6.5 %, limit 5 %\)") as refused:
        flows[ORDERS].step(1000)
    assert refused.value.why == "'is paid' does not hold in 13 rows; contract orders 2.1.0 requires it"


def test_an_expectation_with_fail_stops_the_batch(line: Make, tmp_path: Path) -> None:
    lenient = replace(CONTRACT, limit=None)
    shop_line = line(shop(tmp_path, lenient, expect={"not free": ("cents > 0", "fail")}))
    shop_line.send({"id": 1, "cents": 5}, {"id": 2, "cents": 0})
    flows = shop_line.flows()
    flows["bronze.events"].step(1000)
    with pytest.raises(ContractViolation, match="refused 1 of 2 rows in batch 1") as refused:
        flows[ORDERS].step(1000)
    assert refused.value.why == "'not free' does not hold in 1 row; the table expects it, with fail"


def test_rows_that_come_too_late_are_dead_letters(line: Make, tmp_path: Path) -> None:
    shop_line = line(shop(tmp_path, replace(CONTRACT, limit=None)))
    for number, age in enumerate((0, 3599, 3600, 3601)):
        happened = ARRIVED - timedelta(seconds=age)
        shop_line.send({"id": number, "cents": 5, "at": happened.isoformat()})
    (batch,) = shop_line.run()[ORDERS]
    assert balanced([batch])
    assert shop_line.column(ORDERS, "id") == [0, 1, 2]
    place = ("topic", "partition", "offset", "timestamp", "contract", "batch", "state")
    ((*told, key, headers, value, reasons),) = shop_line.rows(DEAD, *place, "key", "headers", "value", "reasons")
    assert reasons[0].partition(":")[0] == "late"
    assert told == ["events", 0, 3, ARRIVED.replace(tzinfo=None), "orders 2.1.0", 1, "open"]
    raw = [(header.key, bytes(header.value)) for header in headers]
    assert (bytes(key), raw, bytes(value)) == (b"key 3", [("trace", b"\x00\xff")], shop_line.sent[3].value)


def test_header_lines_and_empty_files_are_no_records(line: Make, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "a.csv").write_text("id,name\n1,ann\n2,bob\nx,eve\n")
    (inbox / "b.csv").write_text("")
    pipeline = Pipeline("people")
    pipeline.bronze("lines", Files(str(inbox), format="csv", settle="0 s", options={"header": "true"}))

    @pipeline.silver(decode=Csv("id bigint, name string"))
    def people(lines: DataFrame) -> DataFrame:
        return lines

    @pipeline.silver
    def raw_lines(lines: DataFrame) -> DataFrame:
        return lines.select("row")

    found = line(pipeline)
    (batch,) = found.run()["silver.people"]
    assert found.rows("silver.people", "id", "name") == [(1, "ann"), (2, "bob")]
    ((reasons, row),) = found.rows("silver.people__dead", "reasons", "row")
    assert (reasons[0][:4], row) == ("csv:", 3)
    marks = [value for row, value in found.rows("bronze.lines", "row", "value") if row == 0]
    assert b"id,name" in map(bytes, filter(None, marks))
    assert batch.rows["filtered"] == len(marks), "header lines and empty files are counted, and are no records"
    assert balanced([batch])
    assert found.column("silver.raw_lines", "row") == [1, 2, 3]
