"""Masked values on real Spark: the same value gives the same mask, and only with the key."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

import pytest

from lodestream.contracts import Contract, Field, Masking
from lodestream.contracts.masking import MaskingKey, masked, masking_parameters, sensitive
from lodestream.errors import ContractError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECRET = "correct horse battery staple"


def mask_of(spark: SparkSession, masking: Masking, values: list[str | None], secret: str = SECRET) -> list[str | None]:
    sql = masked(Contract("t", "1.0.0", (Field("v", "string", masking=masking),)))["v"]
    spark.createDataFrame([(n, value) for n, value in enumerate(values)], "n int, v string").createOrReplaceTempView(
        "people"
    )
    rows = spark.sql(f"SELECT {sql} AS m FROM people ORDER BY n", args=masking_parameters(secret)).collect()
    return [row.m for row in rows]


@pytest.mark.parametrize("secret", [SECRET, "k" * 63 + "xé", "long" * 40])
def test_hash_is_a_real_keyed_hash(spark: SparkSession, secret: str) -> None:
    values = ["+31 6 1234", "", "héé", None]
    expected = [
        hmac.new(secret.encode(), v.encode(), hashlib.sha256).hexdigest() if v is not None else None for v in values
    ]
    assert mask_of(spark, Masking("hash"), values, secret) == expected


def test_an_inline_key_gives_the_same_hash(spark: SparkSession) -> None:
    contract = Contract("t", "1.0.0", (Field("v", "string", masking=Masking("hash")),))
    frame = spark.createDataFrame([("Ada",)], "v string")
    (row,) = frame.selectExpr(f"{masked(contract, MaskingKey.inline(SECRET))['v']} AS m").collect()
    assert [row.m] == mask_of(spark, Masking("hash"), ["Ada"])


def test_redact_keeps_only_whether_there_was_a_value(spark: SparkSession) -> None:
    assert mask_of(spark, Masking("redact"), ["a", "", None]) == ["[redacted]", "[redacted]", None]


def test_last_digits_are_kept_and_short_values_hidden_whole(spark: SparkSession) -> None:
    values = ["4111 1111 1111 1234", "1234", "12", "", "a-1-b-2-3-4", "ÄÖÜ99999", None]
    assert mask_of(spark, Masking("last", 4), values) == [
        "**** **** **** 1234",
        "****",
        "**",
        "",
        "*-*-b-2-3-4",
        "****9999",
        None,
    ]


def test_nested_values_are_masked_in_place(spark: SparkSession) -> None:
    person = (Field("name", "string", masking=Masking("redact")), Field("age", "int"))
    kind = "struct<name:string,age:int>"
    contract = Contract(
        "t",
        "1.0.0",
        (
            Field("p", kind, fields=person),
            Field("all", f"array<{kind}>", items=Field("element", kind, fields=person)),
            Field("n", "int", masking=Masking("redact"), classification="pii"),
            Field("open", "string"),
        ),
    )
    found = masked(contract)
    assert set(found) == {"p", "all", "n"}
    assert sensitive(contract) == ("p.name", "all[].name", "n")
    ada, bo = (f"named_struct('name', '{name}', 'age', {age})" for name, age in (("Ada", 36), ("Bo", 3)))
    spark.sql(f"SELECT {ada} AS p, array({bo}, NULL) AS all, 7 AS n").createOrReplaceTempView("nested")
    row = spark.sql(f"SELECT {found['p']} AS p, {found['all']} AS a, {found['n']} AS n FROM nested").first()
    assert row is not None
    assert (tuple(row.p), row.n) == (("[redacted]", 36), None)
    assert [tuple(one) if one else None for one in row.a] == [("[redacted]", 3), None]


@pytest.mark.parametrize("weak", ["", "short", "x" * 40])
def test_a_weak_key_is_refused(weak: str) -> None:
    with pytest.raises(ContractError, match="too weak"):
        masking_parameters(weak)
