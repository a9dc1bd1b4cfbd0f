"""`unique` on a column that is not the key: one row has the value, the others are dead letters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from silver_line import SilverLine, balanced

from lodestream import Json, Kafka, Pipeline, failpoints
from lodestream.contracts import Record, column
from lodestream.recovery.choice import Choice
from lodestream.recovery.replay import Replay

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Make = Callable[[Pipeline], SilverLine]
pytestmark = pytest.mark.usefixtures("summer_time")
RIDERS, DEAD = "silver.riders", "silver.riders__dead"
TAKEN = ["mail is not unique: a"]


class Riders(Record):
    """People, who each have an address of their own."""

    version = "1.0.0"
    owner = "tests"

    id: int = column("bigint", required=False)
    day: str | None = column("date")
    mail: str | None = column(unique=True)


def riders(**options: Any) -> Pipeline:
    pipeline = Pipeline("taxi")
    pipeline.bronze("events", Kafka("events"))
    event = Json("id bigint, day string, mail string, seq bigint, gone boolean")

    @pipeline.silver("riders", decode=event, contract=Riders, **options)
    def made(events: DataFrame) -> DataFrame:
        return events

    return pipeline


def rider(number: int, mail: str | None, day: str | None = "2024-01-01", **more: Any) -> dict[str, Any]:
    return {"id": number, "mail": mail, "day": day, **more}


def letters(line: SilverLine) -> list[tuple[Any, ...]]:
    return line.rows(DEAD, "offset", "reasons")


def test_another_key_with_the_same_value_is_refused_within_and_across_batches(line: Make) -> None:
    taxi = line(riders(keys="id", partition_by="days(day)", dedupe_within="days(day)"))
    taxi.send(rider(1, "a"), rider(2, "a"), rider(3, None), rider(4, None), rider(1, "a"), rider(2, "b"))
    flows = taxi.flows()
    (first,) = taxi.run(flows)[RIDERS]
    assert letters(taxi) == [(1, TAKEN)]
    assert (first.rows["out"], first.rows["duplicates"]) == (4, 1), "the same key again is a duplicate"
    assert taxi.rows(RIDERS, "id", "mail")[:2] == [(1, "a"), (2, "b")], "a refused row does not hold its key"

    # Within the declared period, as for duplicates; rows without a day are a period, too.
    taxi.send(rider(5, "a"), rider(6, "a", "2024-01-02"), rider(7, "a", None), rider(1, "a"))
    (second,) = taxi.run(flows)[RIDERS]
    taxi.send(rider(8, "a", None), rider(9, "a", "2024-01-02"), rider(7, "a", None))
    (third,) = taxi.run(flows)[RIDERS]
    assert [offset for offset, _ in letters(taxi)] == [1, 10, 11, 6]
    assert (second.rows["duplicates"], third.rows["duplicates"]) == (1, 1)
    assert balanced([first, second, third])
    assert Replay(taxi.silver(RIDERS).visited, Choice()).run().replayed == 0, "their values are still taken"


def test_a_value_is_unique_in_the_whole_table_however_it_is_partitioned(line: Make) -> None:
    taxi = line(riders(keys="id", partition_by="days(day)"))
    taxi.send(rider(1, "a"), rider(2, "b"))
    flows = taxi.flows()
    taxi.run(flows)
    taxi.send(rider(3, "a", "2024-01-02"), rider(4, "b", None), rider(5, "c", None), rider(1, "d", "2024-01-03"))
    (batch,) = taxi.run(flows)[RIDERS]
    assert [offset for offset, _ in letters(taxi)] == [2, 3]
    assert (batch.rows["out"], batch.rows["duplicates"]) == (1, 1)


def test_without_a_key_every_row_is_one(line: Make) -> None:
    taxi = line(riders())
    taxi.send(rider(1, "a"), rider(1, "a"), rider(1, None), rider(2, None))
    taxi.run()
    taxi.send(rider(1, "a"), rider(1, "b"))
    (batch,) = taxi.run()[RIDERS]
    assert balanced([batch])
    assert letters(taxi) == [(1, TAKEN), (4, TAKEN)]
    assert taxi.rows(RIDERS, "mail") == [("a",), ("b",), (None,), (None,)]


def test_a_table_that_changes_by_key_frees_a_value_and_replays_what_waited_for_it(line: Make) -> None:
    taxi = line(riders(keys="id", sequence_by="seq", delete_when="gone"))
    taxi.send(rider(1, "a", seq=1), rider(2, "b", seq=1))
    keeper = taxi.flows()
    taxi.run(keeper)
    taxi.send(rider(2, "a", seq=2), rider(3, "c", seq=1), rider(1, "a", seq=2))
    taxi.run(keeper)
    assert letters(taxi) == [(2, TAKEN)]
    taxi.send(rider(1, "a", seq=3, gone=True))
    taxi.run(keeper)
    assert taxi.rows(RIDERS, "id", "mail") == [(2, "b"), (3, "c")]

    # The run publishes after the letters were judged: what they take was free then, and is not any more.
    taxi.send(rider(4, "a", seq=1))
    keeper["bronze.events"].step(1000)
    failpoints.arm("judge.after", RIDERS, lambda: (failpoints.disarm(), taxi.run(keeper)))
    assert Replay(taxi.silver(RIDERS).visited, Choice()).run().replayed == 0
    taxi.send(rider(4, "d", seq=2))
    taxi.run(keeper)
    done = Replay(taxi.silver(RIDERS).visited, Choice()).run()
    assert (done.replayed, done.failing) == (1, 0)
    assert taxi.rows(RIDERS, "id", "mail") == [(2, "a"), (3, "c"), (4, "d")]
    held = taxi.spark.sql(
        f"SELECT id, mail, sum(_weight) AS n FROM lode.{RIDERS}__changes WHERE _weight <> 0 GROUP BY ALL HAVING n <> 0"
    )
    assert sorted(map(tuple, held.collect())) == [(2, "a", 1), (3, "c", 1), (4, "d", 1)], "the feed adds up"
