"""What the contract masks is in no column and no reason; and one Bronze table feeds several Silver tables."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, explode_outer, udf

from lodestream import Json, Kafka, Pipeline
from lodestream.contracts import Record, column, rule
from lodestream.contracts.masking import VARIABLE
from lodestream.errors import ConfigError

KEY = "0123456789abcdef-of-this-test"
NAMES, MAIL, PHONE = "Ada Lovelace", "ada@example.org", "+44 20 7946 0958"
EVENT = "id bigint, name string, mail string, phone string, card string, trips array<struct<zone:string,fare:double>>"


class Riders(Record):
    """One rider, hidden from those who may not know."""

    version = "1.0.0"

    mail: str = column(key=True, masking="hash", classification="pii", pattern="[^@]+@[^@]+")
    name: str | None = column(masking="redact", min_length=3)
    phone: str | None = column(masking="last 4", classification="pii")
    card: int | None = column("bigint", masking="redact", coerce=True)
    id: int | None = column("bigint")

    rules = [rule("named mail", "name is null or mail not like 'nobody%'")]  # noqa: RUF012


def declared() -> Pipeline:
    pipeline = Pipeline("riders")
    pipeline.bronze("events", Kafka("events"))

    @udf("bigint")
    def checked(mail, identifier):  # type: ignore[no-untyped-def]
        if mail == "raise@example.org":
            raise ValueError(f"I do not know {mail}")
        return identifier

    @pipeline.silver(decode=Json(EVENT), contract=Riders)
    def riders(events: DataFrame) -> DataFrame:
        return events.withColumn("id", checked("mail", "id"))

    @pipeline.silver(decode=Json(EVENT), filters={"has a trip": "zone is not null"})
    def fares(events: DataFrame) -> DataFrame:
        return events.select(explode_outer("trips").alias("trip"), "_lode").select("trip.zone", "trip.fare", "_lode")

    @pipeline.silver(decode=Json(EVENT), keys="id", filters={"with a name": "name is not null"})
    def names(events: DataFrame) -> DataFrame:
        return events.select("id", col("name"), "_lode")

    return pipeline


def event(mail: Any = MAIL, **more: Any) -> dict[str, Any]:
    return {"id": 1, "name": NAMES, "mail": mail, "phone": PHONE, "card": "4111111111111111", **more}


def hashed(value: str) -> str:
    return hmac.new(KEY.encode(), value.encode(), hashlib.sha256).hexdigest()


def test_masked_values_are_in_no_column_and_in_no_reason(
    line: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    made = line(declared())
    secrets = ("secret@", "nobody", "Zz", "four-one-one", "raise@", "777")
    made.send(
        event(),
        event(id=2),  # the same mail: a duplicate, known by its hash
        event("eve@example.org", name=None, phone="0958", id=3),
        event("secret@@example.org"),
        event("nobody@example.org"),
        event("short@example.org", name="Zz"),
        event("card@example.org", card="four-one-one"),
        event("raise@example.org"),
        event(mail=777),  # refused by the decoder, before the contract sees it
    )
    made.run()
    assert made.rows("silver.riders", "mail", "name", "phone", "card", "id") == [
        (hashed(MAIL), "[redacted]", "+** ** **** 0958", None, 1),
        (hashed("eve@example.org"), None, "****", None, 3),
    ]
    made.send(event(id=4))  # in a later batch it is still the same rider
    [published] = made.run()["silver.riders"]
    assert published.rows["duplicates"] == 1
    reasons = {row[0]: " | ".join(row[1]) for row in made.rows("silver.riders__dead", "offset", "reasons")}
    assert reasons == {
        3: "mail does not match [^@]+@[^@]+",
        4: "rule: named mail",
        5: "name is shorter than 3",
        6: "card is not a bigint",
        7: "raised: ValueError (its text is not shown, because the contract masks fields)",
        8: "json: mail is a hidden value, not a string",
    }
    assert not [(place, text) for place, text in reasons.items() if any(one in text for one in secrets)]


def test_without_its_key_a_table_that_hashes_does_not_start(
    line: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    made = line(declared())
    made.send(event(trips=[{"zone": "a", "fare": 1.5}, {"zone": "b", "fare": 2.0}]), event(id=2, name=None, trips=[]))
    flows = made.flows()
    blocked = flows.pop("silver.riders")
    made.run(flows)
    assert made.rows("silver.fares", "zone", "fare") == [("a", 1.5), ("b", 2.0)], "one event became two rows"
    assert made.rows("silver.names", "id", "name") == [(1, NAMES)], "and one row of another table"
    with pytest.raises(ConfigError, match="hashes mail, and there is no key") as caught:
        blocked.step(10)
    assert VARIABLE in str(caught.value)
