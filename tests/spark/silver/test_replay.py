"""Dead letters are replayed once, whatever happens in between, and beside a run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from silver_line import SilverLine

from lodestream import Json, Kafka, Pipeline, failpoints
from lodestream.errors import AuditFailed, CatalogUnavailable
from lodestream.recovery.choice import Choice
from lodestream.recovery.discard import discard
from lodestream.recovery.replay import Replay, Replayed
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.publish import Moved, Staged, Writer
from lodestream.tables.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Make = Callable[[Pipeline], SilverLine]
ORDERS, DEAD = "silver.orders", "silver.orders__dead"


class Killed(BaseException):
    """The process is gone: nothing of it may run on."""


def killed() -> None:
    raise Killed


def shop(least: int, **options: Any) -> Pipeline:
    """Orders of at least so many cents; the rest is dead."""
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))
    expect = {"enough": (f"cents >= {least}", "quarantine")}

    @pipeline.silver(decode=Json("id bigint, cents bigint"), expect=expect, **options)
    def orders(events: DataFrame) -> DataFrame:
        return events

    pipeline.gold("totals", sql="SELECT count(*) AS n, sum(cents) AS cents FROM silver.orders")
    return pipeline


def replay(line: SilverLine, choice: Choice | None = None, **options: Any) -> Replayed:
    return Replay(line.silver(ORDERS).visited, choice or Choice(), **options).run()


def states(line: SilverLine) -> Counter[str]:
    """Each letter by its last row."""
    last = "SELECT max_by(state, dead_at) AS state FROM lode.silver.orders__dead GROUP BY letter"
    return Counter(row.state for row in line.spark.sql(last).collect())


def some_dead(make: Make, **options: Any) -> SilverLine:
    line = make(shop(100, **options))
    line.send(*[{"id": number, "cents": number * 10} for number in range(1, 21)], b"{broken", b"")
    line.run()
    assert line.column(ORDERS, "id") == list(range(10, 21))
    return line


def test_a_catalog_that_others_are_quicker_at_is_asked_again(line: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    shop_line = some_dead(line)
    shop_line.declare(shop(50))
    real, lost = IcebergStore.point, iter(["table changed", "table changed"])

    def point(store: IcebergStore, branch: str, snapshot_id: int) -> None:
        why = next(lost, None) if store.name == ORDERS else None
        if why is not None:
            raise CatalogUnavailable(f"pointing {branch}: the catalog did not answer", why=why)
        real(store, branch, snapshot_id)

    monkeypatch.setattr(IcebergStore, "point", point)
    done = replay(shop_line)
    assert next(lost, None) is None, "both were raised"
    assert (done.chosen, done.replayed, done.failing) == (11, 5, 6)
    assert shop_line.column(ORDERS, "id") == list(range(5, 21))
    assert states(shop_line) == {"replayed": 5, "open": 6}


def test_a_commit_whose_answer_is_lost_is_not_made_again(line: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    shop_line = some_dead(line)
    shop_line.declare(shop(50))
    real, lost = Writer.publish, iter([ORDERS])

    def publish(writer: Writer, staged: Staged) -> Snapshot:
        done = real(writer, staged)
        if writer.store.name == ORDERS and next(lost, None):
            raise Moved(ORDERS, why="as it looked then")
        return done

    monkeypatch.setattr(Writer, "publish", publish)
    done = replay(shop_line)
    assert next(lost, None) is None, "it was raised"
    assert (done.replayed, done.failing) == (5, 6)
    assert shop_line.column(ORDERS, "id") == list(range(5, 21)), "without keys nothing else would tell them apart"
    assert states(shop_line) == {"replayed": 5, "open": 6}


def test_a_commit_that_lands_while_the_letters_are_judged_again_is_not_made_twice(
    line: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop_line = some_dead(line)
    shop_line.declare(shop(50))
    real, publish_share = Writer.publish, Replay._publish
    away, under_way = iter([ORDERS]), list[tuple[Writer, Staged]]()

    def publish(writer: Writer, staged: Staged) -> Snapshot:
        if writer.store.name == ORDERS and next(away, None):
            under_way.append((writer, staged))
            raise CatalogUnavailable("publishing: the catalog does not answer")
        return real(writer, staged)

    def judged(replaying: Replay, *given: Any) -> None:
        while under_way:
            writer, staged = under_way.pop()
            writer.store.fast_forward(writer.branch, staged.snapshot.id, staged.base.main_version)
        publish_share(replaying, *given)

    monkeypatch.setattr(Writer, "publish", publish)
    monkeypatch.setattr(Replay, "_publish", judged)
    done = replay(shop_line)
    assert shop_line.column(ORDERS, "id") == list(range(5, 21)), "without keys nothing else would tell them apart"
    assert states(shop_line) == {"replayed": 5, "open": 6}
    assert (done.chosen, done.replayed, done.failing) == (11, 5, 6)


def test_what_passes_after_a_fix_is_published_once_and_the_rest_stays_open(line: Make) -> None:
    shop_line = some_dead(line)
    shop_line.declare(shop(50))
    tried = replay(shop_line, dry_run=True)
    assert (tried.chosen, tried.failing, tried.replayed) == (11, 6, 0)
    assert shop_line.column(ORDERS, "id") == list(range(10, 21)), "a dry run writes nothing"
    done = replay(shop_line)
    assert (done.chosen, done.replayed, done.failing) == (11, 5, 6)
    assert done.reasons == {"expect: enough": 4, "json: malformed at byte 1": 1, "json: empty value": 1}
    assert shop_line.column(ORDERS, "id") == list(range(5, 21))
    assert states(shop_line) == {"replayed": 5, "open": 6}
    again = replay(shop_line)
    assert (again.chosen, again.replayed) == (6, 0)
    shop_line.declare(shop(10))
    assert replay(shop_line, Choice(rule="enou")).chosen == 0
    assert replay(shop_line, Choice(rule="ENOUGH", limit=2)).replayed == 2
    shop_line.run()
    n, cents = shop_line.rows("gold.totals", "n", "cents")[0]
    assert (n, cents) == (18, sum(shop_line.column(ORDERS, "cents")))


# Decisions without rows, rows that nobody sees, rows whose publication was not noticed; LODE_LONG=1 adds the others.
POINTS = [("publish.swapped", DEAD), ("stage.after", ORDERS), ("publish.swapped", ORDERS)]
if os.environ.get("LODE_LONG"):
    POINTS += [("publish.swap", DEAD), ("publish.swap", ORDERS), ("dead.staged", ORDERS), ("stage.before", ORDERS)]


def test_kill_at_every_point_then_replay_again(line: Make) -> None:
    shop_line = some_dead(line)
    for least, (point, table) in zip(range(90, 0, -10), POINTS, strict=False):
        shop_line.declare(shop(least))
        failpoints.arm(point, table, killed)
        with pytest.raises(Killed):
            replay(shop_line)
        failpoints.disarm()
        if least % 20:  # the keeper of the table may be the first to come, or the next replay
            shop_line.send({"id": 1000 + least, "cents": 500})
            flows = shop_line.flows()
            shop_line.run({name: flows[name] for name in ("bronze.events", ORDERS)})
        replay(shop_line)
        kept = [one for one in shop_line.column(ORDERS, "id") if one < 1000]
        assert kept == list(range(least // 10, 21)), point
    assert states(shop_line) == {"replayed": len(POINTS), "open": 11 - len(POINTS)}


def test_a_replay_and_a_run_at_the_same_time(line: Make) -> None:
    shop_line = some_dead(line)
    keeper = shop_line.flows()
    shop_line.send({"id": 30, "cents": 500})
    shop_line.run(keeper)
    shop_line.declare(shop(50))
    shop_line.send({"id": 31, "cents": 500}, {"id": 0, "cents": 1})
    keeper["bronze.events"].step(100)
    # The run publishes while the replay has staged its rows: the replay loses that race and tries again.
    failpoints.arm("stage.after", ORDERS, lambda: (failpoints.disarm(), keeper[ORDERS].step(100)))
    assert replay(shop_line).replayed == 5
    # And the other way round: the replay lands between two steps of the run.
    shop_line.declare(shop(30))
    shop_line.send({"id": 32, "cents": 500})
    keeper["bronze.events"].step(100)
    failpoints.arm("stage.after", ORDERS, lambda: (failpoints.disarm(), replay(shop_line)))
    assert keeper[ORDERS].step(100) is not None
    shop_line.run(keeper)
    assert shop_line.column(ORDERS, "id") == [*range(3, 21), 30, 31, 32]
    assert states(shop_line) == {"replayed": 7, "open": 5}


def test_two_replays_at_the_same_time(line: Make) -> None:
    shop_line = some_dead(line)
    shop_line.declare(shop(50))
    second: list[Replayed] = []

    def meanwhile() -> None:
        failpoints.disarm()
        second.append(replay(shop_line))

    failpoints.arm("dead.staged", ORDERS, meanwhile)
    first = replay(shop_line)
    assert (first.replayed, second[0].replayed) == (0, 5)
    assert shop_line.column(ORDERS, "id") == list(range(5, 21))
    assert states(shop_line) == {"replayed": 5, "open": 6}


def test_a_key_that_came_meanwhile_is_not_doubled(line: Make) -> None:
    shop_line = some_dead(line, keys=["id"])
    shop_line.send({"id": 7, "cents": 700})
    shop_line.run()
    shop_line.declare(shop(50, keys=["id"]))
    done = replay(shop_line)
    assert (done.replayed, done.rows["out"], done.rows["duplicates"]) == (5, 4, 1)
    assert shop_line.column(ORDERS, "id") == list(range(5, 21))


def test_discarded_letters_are_not_replayed(line: Make) -> None:
    shop_line = some_dead(line)
    table = shop_line.silver(ORDERS).visited
    assert discard(table, Choice(reason="json:"), note="a broken producer") == 2
    assert discard(table, Choice(reason="json:")) == 0
    shop_line.declare(shop(0))
    assert replay(shop_line).replayed == 9
    assert states(shop_line) == {"replayed": 9, "discarded": 2}


def exploding(least: int, cents: str = "explode(cents)", **options: Any) -> Pipeline:
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))

    @pipeline.silver(
        decode=Json("id bigint, cents array<bigint>"), expect={"enough": (f"c >= {least}", "quarantine")}, **options
    )
    def orders(events: DataFrame) -> DataFrame:
        return events.selectExpr("id", f"{cents} AS c", "_lode")

    return pipeline


def test_an_event_of_many_rows_is_replayed_whole_or_not_at_all(line: Make) -> None:
    shop_line = line(exploding(100))
    shop_line.send({"id": 1, "cents": [500, 50]}, {"id": 2, "cents": [50, 60]}, {"id": 3, "cents": [50, 5]})
    shop_line.run()
    shop_line.declare(exploding(40))
    done = replay(shop_line)
    # Of event 1 a row is in the table: without keys, nobody could tell it from the one that would come again.
    assert (done.chosen, done.replayed) == (5, 2)
    assert any("without keys they would come twice" in reason for reason in done.reasons)
    assert shop_line.rows(ORDERS, "id", "c") == [(1, 500), (2, 50), (2, 60)]


def test_code_that_gives_fewer_rows_now_does_not_bring_those_that_are_there_again(line: Make) -> None:
    shop_line = line(exploding(100))
    shop_line.send({"id": 1, "cents": [500, 50]}, {"id": 2, "cents": [50, 60]})
    shop_line.run()
    assert shop_line.rows(f"{ORDERS}__dead", "beside", "value LIKE '%500%'") == [(0, False), (0, False), (1, True)]
    # Now one row an event: as many as event 1 has letters, and it is the one in the table.
    shop_line.declare(exploding(0, "cents[0]"))
    done = replay(shop_line)
    assert (done.chosen, done.replayed) == (3, 2)
    assert shop_line.rows(ORDERS, "id", "c") == [(1, 500), (2, 50)]


def test_letters_from_before_their_rows_were_counted_are_replayed_as_they_were(line: Make) -> None:
    shop_line = line(exploding(100))
    shop_line.send({"id": 1, "cents": [500, 50]}, {"id": 2, "cents": [50, 60]})
    shop_line.run()
    shop_line.spark.sql(f"ALTER TABLE lode.{ORDERS}__dead DROP COLUMN beside")
    shop_line.send({"id": 3, "cents": [50]})
    shop_line.run()
    shop_line.declare(exploding(40, allow_no_rows=True))
    assert (replay(shop_line).replayed, shop_line.rows(ORDERS, "id", "c")[1:]) == (3, [(2, 50), (2, 60), (3, 50)])


def test_letters_of_a_table_made_from_a_keyed_one_need_no_count_of_what_is_beside_them(line: Make) -> None:
    """Its rows have keys, so a replay finds them again; and of its batches nobody can say what was kept before."""
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))

    @pipeline.silver(decode=Json("id bigint, cents bigint, at bigint"), keys="id", sequence_by="at")
    def orders(events: DataFrame) -> DataFrame:
        return events

    @pipeline.silver(expect={"enough": ("cents >= 100", "quarantine")})
    def large(orders: DataFrame) -> DataFrame:
        return orders

    shop_line = line(pipeline)
    shop_line.send({"id": 1, "cents": 500, "at": 1}, {"id": 2, "cents": 50, "at": 1}, {"id": 3, "cents": 60, "at": 1})
    shop_line.run()
    assert shop_line.rows("silver.large", "id", "cents") == [(1, 500)]
    assert shop_line.rows("silver.large__dead", "value LIKE '%50%'", "beside") == [(False, None), (True, None)]
    # A row that was good is refused now, and goes; one that was refused is good.
    shop_line.send({"id": 1, "cents": 5, "at": 2}, {"id": 2, "cents": 200, "at": 2})
    shop_line.run()
    assert shop_line.rows("silver.large", "id", "cents") == [(2, 200)]
    assert len(shop_line.rows("silver.large__dead", "letter")) == 3


def following(least: int, *, several: bool = False) -> Pipeline:
    pipeline = Pipeline("shop")
    pipeline.bronze("events", Kafka("events"))

    @pipeline.silver(
        decode=Json("id bigint, cents bigint, at bigint, gone boolean"), keys="id", sequence_by="at", delete_when="gone"
    )
    def orders(events: DataFrame) -> DataFrame:
        return events

    @pipeline.silver(expect={"enough": (f"cents >= {least}", "quarantine")})
    def large(orders: DataFrame) -> DataFrame:
        copies = "explode(sequence(1, id))" if several else "1"
        return orders.selectExpr("*", f"{copies} AS copy")

    return pipeline


def test_letters_of_a_table_made_from_a_keyed_one_bring_no_old_rows_back(line: Make) -> None:
    """What counts is the row that the key has now: it may have changed since, or be gone."""
    shop_line = line(following(100))
    shop_line.send(*[{"id": one, "cents": 10 * one, "at": 1} for one in (1, 2, 3, 4)])
    shop_line.run()
    shop_line.send({"id": 1, "cents": 700, "at": 2}, {"id": 2, "at": 2, "gone": True}, {"id": 4, "cents": 2, "at": 2})
    shop_line.run()
    assert shop_line.rows("silver.large", "id", "cents") == [(1, 700)]
    shop_line.declare(following(25))
    done = Replay(shop_line.silver("silver.large").visited, Choice()).run()
    assert shop_line.rows("silver.large", "id", "cents") == [(1, 700), (3, 30)]
    assert (done.replayed, done.failing) == (4, 1), "of the two letters of id 4 one stands for both"
    shop_line.run()
    assert shop_line.rows("silver.large", "id", "cents") == [(1, 700), (3, 30)]
    shop_line.declare(following(1))
    assert Replay(shop_line.silver("silver.large").visited, Choice()).run().failing == 0
    assert shop_line.rows("silver.large", "id", "cents") == shop_line.rows("silver.orders", "id", "cents")


def test_several_rows_for_a_key_of_the_followed_table_are_refused_in_words(line: Make) -> None:
    shop_line = line(following(1, several=True))
    shop_line.send({"id": 1, "cents": 10, "at": 1})
    shop_line.run()
    assert shop_line.rows("silver.large", "id", "copy") == [(1, 1)]
    shop_line.send({"id": 3, "cents": 10, "at": 1})
    with pytest.raises(AuditFailed, match=r'gives 3 rows for the key \{"id":3\}'):
        shop_line.run()
