"""A value that Python had and Spark is asked for by a literal is the same value."""

from __future__ import annotations

import random
from typing import Any

from lodestream.contracts.quoting import in_list, text

ALPHABET = "\0\0\0\0017012\\\\''\"$${}}un%_\t\n\r\x1aé😀 ax`"


def test_every_text_is_the_same_as_a_literal(spark: Any) -> None:
    chance = random.Random(5)
    texts = ["".join(chance.choices(ALPHABET, k=chance.randrange(0, 9))) for _ in range(400)]
    texts += ["r\x0012", "\x00000", "\\012", "\\u0041", "${spark.app.name}", "%\\_", "\x00177"]
    shown = spark.sql("SELECT " + ", ".join(f"hex({text(one)})" for one in texts)).first()
    assert [one for one, got in zip(texts, shown, strict=True) if got != one.encode().hex().upper()] == []
    some = sorted({one for one in texts if "\0" in one})
    listed = in_list(some, "string")
    found = spark.createDataFrame([(one,) for one in some], "id string").where(f"id IN {listed}").count()
    assert found == len(some)


def test_no_setting_of_the_machine_gets_into_a_query(spark: Any) -> None:
    (found,) = spark.sql("SELECT '${spark.app.name} ${env:PATH} ${system:user.home}'").first()
    assert found == "${spark.app.name} ${env:PATH} ${system:user.home}"
