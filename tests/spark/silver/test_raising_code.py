"""Code that raises on a row costs that row; code that raises on the batch stops the flow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from silver_line import SilverLine, balanced

from lodestream import Json, Kafka, Pipeline
from lodestream.errors import UserCodeError
from lodestream.recovery.choice import Choice
from lodestream.recovery.replay import Replay

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.usefixtures("size")
Make = Callable[[Pipeline], SilverLine]
DEAD = "silver.orders__dead"


def shop(worth: Callable[[DataFrame], DataFrame], among: str = "id - 13") -> Pipeline:
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))

    from pyspark.sql.functions import expr

    @pipeline.silver(decode=Json("id bigint, cents string"))
    def orders(events: DataFrame) -> DataFrame:
        # A time with every digit, as a row of a table has it.
        return worth(events).withColumn("at", expr("timestamp_micros(1700000000123456 + id)"))

    query = f"SELECT id, at, cents div ({among}) AS per_item FROM silver.orders"
    pipeline.silver("items", sql=query, filters={"not free": "per_item <> 0"})

    return pipeline


def in_python(events: DataFrame) -> DataFrame:
    from pyspark.sql.functions import udf

    @udf("bigint")
    def cents(text: str) -> int:
        return int(text)

    return events.withColumn("cents", cents("cents"))


def in_pandas(events: DataFrame) -> DataFrame:
    """A UDF over series, then a function over frames: each raises on a row of its own."""
    from pyspark.sql.functions import pandas_udf

    @pandas_udf("bigint")
    def cents(texts: pd.Series) -> pd.Series:
        return texts.astype("int64")

    def priced(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            if (frame["cents"] < 0).any():
                raise KeyError("a refund")
            yield frame

    counted = events.withColumn("cents", cents("cents"))
    lode = counted.schema["_lode"].dataType.simpleString()
    return counted.mapInPandas(priced, f"id bigint, cents bigint, _lode {lode}")


def in_sql(events: DataFrame) -> DataFrame:
    return events.selectExpr("id", "cast(cents AS bigint) AS cents", "_lode")


def test_a_row_that_raises_is_a_dead_letter_and_the_batch_goes_on(line: Make) -> None:
    shop_line = line(shop(in_python))
    shop_line.send(*[{"id": number, "cents": "x" if number in (7, 31) else "500"} for number in range(40)], b"{")
    done = shop_line.run()
    assert shop_line.column("silver.orders", "id") == [one for one in range(40) if one not in (7, 31)]
    reasons = [reasons for (reasons,) in shop_line.rows(DEAD, "reasons")]
    raised = ["raised: ValueError: invalid literal for int() with base 10: 'x'"]
    assert sorted(reasons) == [["json: malformed at byte 1"], raised, raised]
    # Silver without a contract has dead letters too, once its query raises: id 13 divides by zero.
    (letter,) = shop_line.rows("silver.items__dead", "reasons", "value")
    assert "DIVIDE_BY_ZERO" in letter[0][0]
    assert b'"id":13' in letter[1]
    assert all(balanced(batches) for batches in done.values())
    assert done["silver.items"][0].rows["dead"] == 1
    # After a fix of the code the letters are replayed.
    shop_line.declare(shop(lambda events: in_sql(events.replace("x", "100"))))
    assert Replay(shop_line.silver("silver.orders").visited, Choice(reason="raised")).run().replayed == 2
    assert shop_line.column("silver.orders", "id") == list(range(40))
    # A letter that came from a table comes back as the row it was.
    shop_line.declare(shop(in_sql, among="id + 1"))
    assert Replay(shop_line.silver("silver.items").visited, Choice()).run().replayed == 1
    (item,) = [row for row in shop_line.rows("silver.items", "id", "unix_micros(at)", "per_item") if row[0] == 13]
    assert item == (13, 1700000000123469, 35)


def in_java(events: DataFrame) -> DataFrame:
    """An overflow that Spark has no words of its own for: Java's exception as it is."""
    return events.selectExpr("id", "unix_micros(timestamp_millis(cast(cents AS bigint))) AS cents", "_lode")


def test_an_exception_of_java_itself_costs_its_row(line: Make) -> None:
    shop_line = line(shop(in_java))
    most = str(2**63 - 1)
    shop_line.send(*[{"id": number, "cents": most if number == 3 else "1"} for number in range(7)])
    flows = shop_line.flows()
    done = shop_line.run({name: flows[name] for name in ("bronze.events", "silver.orders")})
    assert shop_line.rows(DEAD, "offset", "reasons") == [(3, ["raised: java.lang.ArithmeticException: long overflow"])]
    assert shop_line.column("silver.orders", "id") == [0, 1, 2, 4, 5, 6]
    assert balanced(done["silver.orders"])


@pytest.mark.parametrize(
    ("worth", "said"),
    [(in_sql, {3: "CAST_INVALID_INPUT"}), (in_pandas, {3: "raised: ValueError: ", 5: "raised: KeyError: 'a refund'"})],
)
def test_one_bad_row_among_many_is_a_dead_letter_however_the_code_is_written(
    line: Make, worth: Callable[[DataFrame], DataFrame], said: dict[int, str]
) -> None:
    shop_line = line(shop(worth))
    cents = {3: "x", 5: "-1" if 5 in said else "1"}
    shop_line.send(*[{"id": number, "cents": cents.get(number, "1")} for number in range(7)])
    flows = shop_line.flows()
    done = shop_line.run({name: flows[name] for name in ("bronze.events", "silver.orders")})
    letters = {offset: reasons[0] for offset, reasons in shop_line.rows(DEAD, "offset", "reasons")}
    assert letters.keys() == said.keys()
    assert all(said[offset] in reason for offset, reason in letters.items())
    assert shop_line.column("silver.orders", "id") == [number for number in range(7) if number not in said]
    assert balanced(done["silver.orders"])


def test_code_that_raises_on_every_row_stops_with_the_users_traceback_first(line: Make) -> None:
    shop_line = line(shop(in_python))
    shop_line.send(*[{"id": number, "cents": "x"} for number in range(150)])
    flows = shop_line.flows()
    flows["bronze.events"].step(1000)
    with pytest.raises(UserCodeError) as stopped:
        flows["silver.orders"].step(1000)
    assert stopped.value.what.startswith("Traceback")
    assert "test_raising_code.py" in stopped.value.what.splitlines()[1]
    assert "worker.py" not in stopped.value.what
    assert "up to 100 rows" in (stopped.value.why or "")


def test_code_that_raises_on_the_batch_stops_with_the_users_traceback_first(line: Make) -> None:
    def broken(events: DataFrame) -> DataFrame:
        raise KeyError("no such zone")

    shop_line = line(shop(broken))
    shop_line.send({"id": 1, "cents": "5"})
    flows = shop_line.flows()
    flows["bronze.events"].step(1000)
    with pytest.raises(UserCodeError) as stopped:
        flows["silver.orders"].step(1000)
    lines = stopped.value.what.splitlines()
    assert lines[0].startswith("Traceback")
    assert "lodestream/flows" not in stopped.value.what
    assert lines[-1].startswith("silver.orders: KeyError in test_raising_code.py")
