"""What a sink is given: every change in its order, from where it is, on real tables of each kind."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from served import Listed, Served, Target, text

from lodestream import failpoints
from lodestream.errors import ConfigError, SinkRefused


class Killed(BaseException):
    """The process is gone; nothing may catch it."""


def die() -> None:
    raise Killed


def test_a_sink_that_is_added_later_is_given_everything_from_the_beginning_in_order(served: Served) -> None:
    for first in (0, 3, 6):
        served.events(first, 3)
    target = Target()
    served.deliverer("bronze.events", Listed(target)).catch_up()
    assert [[row["id"] for _, row in changes] for _, _, changes in target.deliveries] == [
        [0, 1, 2],
        [3, 4, 5],
        [6, 7, 8],
    ]
    assert target.rows == served.rows("bronze.events")


def test_a_restart_goes_on_from_what_the_project_remembers(served: Served) -> None:
    target = Target()
    served.events(0, 2)
    served.deliverer("bronze.events", Listed(target)).catch_up()
    served.events(2, 2)
    served.deliverer("bronze.events", Listed(target)).catch_up()
    served.deliverer("bronze.events", Listed(target)).catch_up()
    assert [len(changes) for _, _, changes in target.deliveries] == [2, 2]


def test_a_large_snapshot_comes_in_parts_and_a_kill_inside_it_repeats_one_of_them(served: Served) -> None:
    served.events(0, 10)
    target = Target()
    sink = Listed(target, batch_rows=4)
    failpoints.arm("sink.before", "bronze.events", die, nth=3)
    with pytest.raises(Killed):
        served.deliverer("bronze.events", sink).catch_up()
    failpoints.disarm()
    assert [len(changes) for _, _, changes in target.deliveries] == [4, 4]
    served.deliverer("bronze.events", sink).catch_up()
    assert sorted({row["id"] for _, _, changes in target.deliveries for _, row in changes}) == list(range(10))
    assert len(set(target.ids)) == 10, "a change that is given again has the same id"


def test_a_kill_between_delivery_and_remembering_repeats_that_delivery_and_no_other(served: Served) -> None:
    served.events(0, 2)
    served.events(2, 2)
    target = Target()
    failpoints.arm("sink.delivered", "bronze.events", die, nth=2)
    with pytest.raises(Killed):
        served.deliverer("bronze.events", Listed(target)).catch_up()
    failpoints.disarm()
    served.events(4, 1)  # what comes meanwhile must not change what is repeated
    served.deliverer("bronze.events", Listed(target)).catch_up()
    first, second, again, last = target.deliveries
    assert second == again
    assert [row["id"] for one in (first, again, last) for _, row in one[2]] == [0, 1, 2, 3, 4]


def test_two_sinks_of_one_table_know_their_own_positions(served: Served) -> None:
    served.events(0, 2)
    one, other = Target(), Target(fails=[OSError("down")])
    first, second = Listed(one, name="one"), Listed(other, name="other")
    served.deliverer("bronze.events", first).catch_up()
    with pytest.raises(OSError, match="down"):
        served.deliverer("bronze.events", second).catch_up()
    served.events(2, 2)
    for sink in (first, second):
        served.deliverer("bronze.events", sink).catch_up()
    assert one.rows == other.rows == served.rows("bronze.events")
    assert [len(changes) for _, _, changes in other.deliveries] == [2, 2]


def test_gold_comes_as_what_changed_and_without_its_hidden_columns(served: Served) -> None:
    target = Target()
    deliverer = served.deliverer("gold.daily", Listed(target))
    served.replace([day("mon", 1), day("tue", 2)])
    deliverer.catch_up()
    served.replace([day("mon", 1), day("tue", 5)])
    deliverer.catch_up()
    assert target.deliveries[1][2] == [(-1, {"day": "tue", "sum": 2}), (1, {"day": "tue", "sum": 5})]
    served.replace([{**day("mon", 1), "_lode_state": 99}, day("tue", 5)])  # only its state changed
    deliverer.catch_up()
    assert target.deliveries[2][2] == []
    assert target.rows == served.rows("gold.daily")


def test_a_keyed_table_comes_by_its_feed(served: Served) -> None:
    served.change_people([(1, 1, "ann"), (1, 2, "bob"), (0, 3, "mark")], [(1, "ann"), (2, "bob")])
    served.change_people([(-1, 2, "bob"), (1, 2, "rob")], [(1, "ann"), (2, "rob")])
    target = Target()
    served.deliverer("silver.people", Listed(target), feed="silver.people__changes").catch_up()
    assert target.deliveries[1][2] == [(-1, {"id": 2, "name": "bob"}), (1, {"id": 2, "name": "rob"})]
    assert target.rows == served.rows("silver.people")


def test_a_sink_of_the_newest_state_is_given_the_whole_table_once_however_far_it_was_behind(served: Served) -> None:
    target = Target()
    sink = Listed(target, latest=True)
    for total in (1, 2, 3):
        served.replace([day("mon", total)])
    deliverer = served.deliverer("gold.daily", sink)
    deliverer.catch_up()
    deliverer.catch_up()
    assert [(whole, changes) for _, whole, changes in target.deliveries] == [(True, [(1, {"day": "mon", "sum": 3})])]


def test_history_that_expired_before_a_sink_came_is_given_as_the_rows_it_left(served: Served) -> None:
    first, second = served.events(0, 3), served.events(3, 3)
    served.events(6, 3)
    served.expire("bronze.events", first)
    target = Target()
    sink = Listed(target, batch_rows=2)
    failpoints.arm("sink.before", "bronze.events", die, nth=3)
    with pytest.raises(Killed):
        served.deliverer("bronze.events", sink).catch_up()
    failpoints.disarm()
    served.deliverer("bronze.events", sink).catch_up()
    assert set(target.rows) == set(served.rows("bronze.events"))
    assert len(set(target.ids)) == 9, "what was given again had the same ids"
    assert sum(f"/{second}/" in one for one in set(target.ids)) == 6


@pytest.mark.parametrize("compacted", [False, True])
def test_a_feed_whose_history_expired_brings_a_row_before_it_takes_it_away(served: Served, *, compacted: bool) -> None:
    names = "abcdefghij"
    feed = [served.change_people([(1, 1, "a"), (1, 2, "b")], [(1, "a"), (2, "b")])]
    for before, now in pairwise(names):
        feed.append(served.change_people([(-1, 1, before), (1, 1, now)], [(1, now), (2, "b")]))
    if compacted:
        feed.append(served.compact("silver.people__changes"))
    served.expire("silver.people__changes", *feed[:-1])
    target = Target()
    served.deliverer("silver.people", Listed(target, batch_rows=3), feed="silver.people__changes").catch_up()
    held: Counter[str] = Counter()
    for weight, row in (one for _, _, changes in target.deliveries for one in changes):
        held[text(row)] += weight
        assert held[text(row)] >= 0, "a row went before it came"
    assert +held == served.rows("silver.people")


def test_a_row_of_the_whole_table_has_another_id_than_a_change_with_its_number(served: Served) -> None:
    first = served.replace([day("mon", 1)])
    target = Target()
    served.deliverer("gold.daily", Listed(target)).catch_up()
    served.replace([day("mon", 1), day("tue", 1)])
    served.deliverer("gold.daily", Listed(target)).catch_up()
    served.deliverer("gold.daily", Listed(target, latest=True, name="whole")).catch_up()
    served.expire("gold.daily", first)
    served.deliverer("gold.daily", Listed(target, name="later")).catch_up()
    rows = [row for _, _, changes in target.deliveries for _, row in changes]
    named: dict[str, set[str]] = {}
    for change, row in zip(target.ids, rows, strict=True):
        named.setdefault(change, set()).add(text(row))
    assert all(len(found) == 1 for found in named.values())


def test_a_position_that_expired_is_no_gap_while_everything_after_it_is_there(served: Served) -> None:
    first = served.events(0, 2)
    target = Target()
    served.deliverer("bronze.events", Listed(target)).catch_up()
    served.events(2, 5)
    served.expire("bronze.events", first)
    failpoints.arm("sink.before", "bronze.events", die, nth=2)
    with pytest.raises(Killed):
        served.deliverer("bronze.events", Listed(target, batch_rows=2)).catch_up()
    failpoints.disarm()
    served.deliverer("bronze.events", Listed(target, batch_rows=2)).catch_up()
    assert sorted(row["id"] for _, _, changes in target.deliveries for _, row in changes) == list(range(7))


def test_changes_that_expired_before_a_sink_had_them_are_refused_in_words_or_replaced_by_the_whole_table(
    served: Served,
) -> None:
    target = Target()
    first = served.replace([day("mon", 1)])
    served.deliverer("gold.daily", Listed(target)).catch_up()
    second = served.replace([day("mon", 2)])
    served.replace([day("mon", 3)])
    served.expire("gold.daily", first, second)
    with pytest.raises(SinkRefused, match="sink listed cannot go on") as refused:
        served.deliverer("gold.daily", Listed(target)).catch_up()
    assert "has expired" in (refused.value.why or "")
    assert 'gap="refresh"' in (refused.value.fix or "")
    found = served.deliverer("gold.daily", Listed(target, gap="refresh")).catch_up()
    assert found.refreshed
    assert target.deliveries[-1][1:] == (True, [(1, {"day": "mon", "sum": 3})])
    served.replace([day("mon", 4)])
    served.deliverer("gold.daily", Listed(target)).catch_up()
    assert target.deliveries[-1][1:] == (False, [(-1, {"day": "mon", "sum": 3}), (1, {"day": "mon", "sum": 4})])


def test_a_table_that_was_rolled_back_is_refused_or_given_whole(served: Served) -> None:
    target = Target()
    first = served.events(0, 2)
    served.events(2, 2)
    served.deliverer("bronze.events", Listed(target)).catch_up()
    served.table("bronze.events").manage_snapshots().rollback_to_snapshot(first).commit()
    with pytest.raises(SinkRefused) as refused:
        served.deliverer("bronze.events", Listed(target)).catch_up()
    assert "was rolled back" in (refused.value.why or "")
    served.deliverer("bronze.events", Listed(target, gap="refresh")).catch_up()
    assert target.rows == served.rows("bronze.events")
    assert sum(target.rows.values()) == 2


def test_a_table_that_was_made_anew_is_refused_or_given_whole(served: Served) -> None:
    target = Target()
    served.change_people([(1, 1, "ann")], [(1, "ann")])
    feed = "silver.people__changes"
    served.deliverer("silver.people", Listed(target), feed=feed).catch_up()
    for name in (feed, "silver.people"):
        served.catalog.drop_table(name)
    served.change_people([(1, 2, "bob")], [(2, "bob")])
    with pytest.raises(SinkRefused) as refused:
        served.deliverer("silver.people", Listed(target), feed=feed).catch_up()
    assert "made anew" in (refused.value.why or "")
    deliverer = served.deliverer("silver.people", Listed(target, gap="refresh"), feed=feed)
    deliverer.catch_up()
    served.change_people([(1, 3, "cat")], [(2, "bob"), (3, "cat")])
    deliverer.catch_up()
    assert target.rows == served.rows("silver.people")


def test_a_compaction_moves_the_position_and_gives_no_row_twice(served: Served) -> None:
    first = served.events(0, 4)
    target = Target()
    sink = Listed(target)
    served.deliverer("bronze.events", sink).catch_up()
    compacted = served.compact("bronze.events")
    served.expire("bronze.events", first)
    served.deliverer("bronze.events", sink).catch_up()
    assert [len(changes) for _, _, changes in target.deliveries] == [4, 0]
    served.events(4, 1)
    served.expire("bronze.events", compacted)
    served.deliverer("bronze.events", sink).catch_up()
    assert [len(changes) for _, _, changes in target.deliveries] == [4, 0, 1]
    assert target.rows == served.rows("bronze.events")


def test_deleting_what_the_project_remembers_repeats_and_loses_nothing(served: Served) -> None:
    served.events(0, 2)
    target = Target()
    served.deliverer("bronze.events", Listed(target)).catch_up()
    served.catalog.drop_table("lode.sinks")
    served.events(2, 1)
    served.deliverer("bronze.events", Listed(target)).catch_up()
    assert sorted(row["id"] for _, _, changes in target.deliveries for _, row in changes) == [0, 0, 1, 1, 2]


def test_a_position_that_is_none_is_refused_in_words(served: Served) -> None:
    served.events(0, 1)
    served.positions.remember("bronze.events/listed", "yesterday")
    with pytest.raises(ConfigError, match="'yesterday' is no position"):
        served.deliverer("bronze.events", Listed(Target())).catch_up()


def day(name: str, total: int) -> dict[str, object]:
    return {"day": name, "sum": total, "_lode_state": total, "_lode_order_x": "hidden"}
