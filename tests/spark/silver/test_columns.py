"""Which columns a Silver table sees, fills and requires."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from silver_line import SilverLine

from lodestream import Json, Kafka, Pipeline, Raw
from lodestream.contracts import Contract, Field, contract_yaml
from lodestream.errors import DeclarationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Make = Callable[[Pipeline], SilverLine]
ORDERS = "silver.orders"
EVENT = Contract(
    "event",
    "1.0.0",
    (
        Field("id", "bigint", required=True),
        Field("total", "double", required=True, source="amount"),
        Field("place", "struct<lat:double>", fields=(Field("lat", "double", required=True),)),
        Field("kind", "string"),
        Field("op", "string"),
        Field("at", "bigint"),
    ),
)
ORDER = Contract(
    "orders",
    "1.0.0",
    (Field("id", "bigint"), Field("amount", "double", required=True, description="net"), Field("note", "string")),
    keys=("id",),
)


def written(folder: Path, contract: Contract) -> Path:
    path = folder / f"{contract.name}.yaml"
    path.write_text(contract_yaml(contract))
    return path


def shop(folder: Path, **options: Any) -> Pipeline:
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))
    decode = Json(str(written(folder, EVENT)))

    @pipeline.silver(decode=decode, contract=written(folder, ORDER), **options)
    def orders(events: DataFrame) -> DataFrame:
        return events.withColumn("twice", events.amount * 2)

    return pipeline


def event(number: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "amount": 1.5, "kind": "web", "place": {"lat": 1.0}, "op": "u", "at": number, **more}


def reasons(line: SilverLine) -> list[str]:
    return line.column(f"{ORDERS}__dead", "array_join(reasons, '|')")


def nullable(line: SilverLine, table: str) -> dict[str, bool]:
    return {field.name: field.nullable for field in line.spark.table(f"lode.{table}").schema}


def test_what_the_decoders_contract_requires_is_enforced_and_filters_see_what_the_function_returned(
    line: Make, tmp_path: Path
) -> None:
    filters = {"by web": "kind = 'web'", "dear": "twice > 2", "paid": "amount > 0"}
    expect = {"small": ("amount < 100", "quarantine"), "even": "id % 2 = 0"}
    shown = line(shop(tmp_path, filters=filters, expect=expect))
    shown.send(event(1), event(2, kind="phone"), event(3, amount=0.5), event(4, kind=None))
    shown.send({"id": 5, "kind": "web"}, {"amount": 2.0, "place": {"lat": None}}, b"{")
    shown.send(event(7, kind="phone", amount=500))
    flows = shown.flows()
    batches = shown.run(flows)[ORDERS]
    assert shown.rows(ORDERS, "id", "amount", "note") == [(1, 1.5, None)]
    assert [batch.rows["filtered"] for batch in batches] == [3]
    assert [batch.rows["warned"] for batch in batches] == [1], "of rows that are kept"
    assert set(shown.spark.table(f"lode.{ORDERS}").columns) == {"id", "amount", "note"}
    found = reasons(shown)
    assert "amount is null" in found
    assert "id is null; place.lat is null" in found
    assert "expect: small" in found, "judged first: a filter hides nothing that is wrong"
    assert len(found) == 4
    # Once for the run, however many batches it has; and again by whoever runs next.
    told = [event.facts() for event in flows[ORDERS].take_notices() if event.name == "column.unfilled"]
    assert told == [{"columns": ("note",), "contract": "orders 1.0.0"}]
    shown.send(event(6))
    shown.run(flows)
    assert not [event for event in flows[ORDERS].take_notices() if event.name == "column.unfilled"]


def test_a_delete_may_lack_what_the_decoders_contract_requires(line: Make, tmp_path: Path) -> None:
    shown = line(shop(tmp_path, sequence_by="at", delete_when="op = 'd'"))
    shown.send(event(1), event(2), {"id": 1, "op": "d", "at": 3}, {"id": 2, "op": "u", "at": 4})
    shown.run()
    assert shown.column(ORDERS, "id") == [2]
    assert reasons(shown) == ["amount is null"]


@pytest.mark.parametrize("options", [{}, {"sequence_by": "at", "delete_when": "op = 'd'"}], ids=["appended", "keyed"])
def test_required_columns_are_required_in_iceberg_until_the_contract_lets_them_be_null(
    line: Make, tmp_path: Path, options: dict[str, Any]
) -> None:
    shown = line(shop(tmp_path, **options))
    shown.send(event(1), event(2))
    shown.run()
    held = nullable(shown, ORDERS)
    assert (held["id"], held["amount"], held["note"]) == (False, False, True)
    feed = f"{ORDERS}__changes"
    if options:
        assert nullable(shown, feed)["amount"], "a mark has no more than its key"
        shown.send({"id": 9, "op": "d", "at": 1}, event(1, amount=3.0, at=5), {"id": 2, "op": "d", "at": 6})
        shown.run()
        assert shown.rows(ORDERS, "id", "amount") == [(1, 3.0)]
    loose = Contract("orders", "2.0.0", (ORDER.fields[0], Field("amount", "double"), ORDER.fields[2]), keys=("id",))
    written(tmp_path, loose)
    event_contract = Contract("event", "2.0.0", tuple(Field(f.name, f.type, source=f.source) for f in EVENT.fields))
    written(tmp_path, event_contract)
    shown.send({"id": 3, "at": 7, "op": "u"})
    shown.run()
    held = nullable(shown, ORDERS)
    assert (held["id"], held["amount"]) == (False, True)
    assert (3, None) in shown.rows(ORDERS, "id", "amount")


@pytest.mark.parametrize("options", [{}, {"sequence_by": "offset"}], ids=["deduplicated", "upserted"])
def test_keys_that_the_decoder_does_not_give_are_an_error_of_the_declaration(
    line: Make, options: dict[str, Any]
) -> None:
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))

    @pipeline.silver(decode=Raw(), keys="order_id", **options)
    def orders(events: DataFrame) -> DataFrame:
        return events

    made = line(pipeline)
    made.send({"order_id": 1})
    with pytest.raises(DeclarationError, match='keys names "order_id", which it does not have') as caught:
        made.run()
    assert caught.value.file == __file__
    assert "its columns are" in str(caught.value.why)
