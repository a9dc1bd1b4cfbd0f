"""The refusals of the publish protocol, one by one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lodestream.errors import AnotherWriter, CatalogUnavailable, OutcomeUnknown
from lodestream.tables.memory import MemoryStore, MemoryTable
from lodestream.tables.publish import Base, Moved, NotCommitted, Staged, Writer
from lodestream.tables.snapshot import Snapshot, Stamp
from lodestream.tables.store import MAIN, Refused


@pytest.fixture
def table() -> MemoryTable:
    return MemoryTable()


def writer(
    table: MemoryTable, run: str, *, gate: Callable[[str], None] = lambda _step: None, alone: bool = True
) -> Writer:
    return Writer(MemoryStore(table, gate), run, patience=0, alone=alone)


def stage(who: Writer, base: Base | None = None) -> Staged:
    base = base or who.begin()
    number = base.stamp.batch + 1 if base.stamp else 1
    stamp = Stamp("bronze.events", who.branch.removeprefix("lode_"), number, {"input": number}, {"input": number - 1})
    client = who.store
    assert isinstance(client, MemoryStore)
    return who.stage(base, stamp, lambda branch, properties: client.append(branch, properties, [number]))


def batch(who: Writer) -> Snapshot:
    return who.publish(stage(who))


def test_batches_of_one_run_follow_each_other(table: MemoryTable) -> None:
    who = writer(table, "a")
    assert [batch(who).id, batch(who).id][-1] == table.refs[MAIN]
    assert table.rows(table.refs[MAIN]) == [1, 2]


def test_the_loser_of_a_race_is_told_who_won(table: MemoryTable) -> None:
    first, second = writer(table, "a"), writer(table, "b")
    staged = stage(first)
    batch(second)
    with pytest.raises(AnotherWriter, match="another run, b"):
        first.publish(staged)


def test_a_run_that_was_overtaken_stops_before_it_stages(table: MemoryTable) -> None:
    first, second = writer(table, "a"), writer(table, "b")
    batch(first)
    batch(second)
    with pytest.raises(AnotherWriter):
        first.begin()


def test_compaction_under_a_batch_means_doing_it_again(table: MemoryTable) -> None:
    who = writer(table, "a")
    staged = stage(who)
    MemoryStore(table).append(MAIN, {}, operation="replace")
    with pytest.raises(Moved):
        who.publish(staged)
    batch(who)
    assert table.rows(table.refs[MAIN]) == [1]


def test_a_rollback_between_stage_and_publish_is_not_undone(table: MemoryTable) -> None:
    who = writer(table, "a")
    first = batch(who)
    staged = stage(who)
    MemoryStore(table).rollback(first.parent or 0)
    with pytest.raises(Moved):
        who.publish(staged)
    assert table.refs[MAIN] == first.parent


def test_a_move_there_and_back_is_a_move(table: MemoryTable) -> None:
    who = writer(table, "a")
    first = batch(who)
    staged = stage(who)
    operator = MemoryStore(table)
    operator.rollback(first.parent or 0)
    operator.rollback(first.id)
    with pytest.raises(Moved):
        who.publish(staged)


def test_a_branch_that_another_run_swept_means_doing_it_again(table: MemoryTable) -> None:
    who = writer(table, "a")
    staged = stage(who)
    assert writer(table, "b").sweep() == [who.branch]
    with pytest.raises(Moved):
        who.publish(staged)
    batch(who)


def test_a_lost_answer_is_resolved_by_the_table(table: MemoryTable) -> None:
    lose = {"fast_forward.answer"}

    def gate(step: str) -> None:
        if step in lose:
            lose.clear()
            raise OutcomeUnknown(step)

    assert batch(writer(table, "a", gate=gate)).id == table.refs[MAIN]


def test_a_lost_request_is_not_taken_for_a_publication(table: MemoryTable) -> None:
    lose = {"fast_forward.swap"}

    def gate(step: str) -> None:
        if step in lose:
            lose.clear()
            raise OutcomeUnknown(step)

    who = writer(table, "a", gate=gate)
    with pytest.raises(Moved):
        batch(who)
    batch(who)
    assert table.rows(table.refs[MAIN]) == [1]


def test_a_run_knows_its_own_publication_when_it_never_got_an_answer(table: MemoryTable) -> None:
    down: set[str] = set()

    def gate(step: str) -> None:
        if step == "fast_forward.answer":
            down.add("refresh")
            raise OutcomeUnknown(step)
        if step in down:
            raise CatalogUnavailable(step)

    who = writer(table, "a", gate=gate)
    with pytest.raises(CatalogUnavailable):
        batch(who)
    batch(writer(table, "b"))
    down.clear()
    with pytest.raises(AnotherWriter):
        who.begin()


def test_a_sibling_table_never_stops_a_run(table: MemoryTable) -> None:
    first, second = writer(table, "a", alone=False), writer(table, "b", alone=False)
    staged = stage(first)
    batch(second)
    with pytest.raises(Moved):
        first.publish(staged)
    batch(first)


class Liar(MemoryStore):
    """A catalog that says yes to a publication and commits nothing, so many times."""

    lies = 0

    def fast_forward(self, branch: str, upto: int, place: str) -> None:
        if self.lies:
            self.lies -= 1
            self._refs[MAIN] = upto  # as the answer says, until the table is read again
        else:
            super().fast_forward(branch, upto, place)


def test_a_catalog_that_says_yes_and_commits_nothing_is_not_believed(table: MemoryTable) -> None:
    liar = Liar(table)
    who = Writer(liar, "a", patience=0)
    first = batch(who)
    liar.lies = 1
    with pytest.raises(NotCommitted, match="said that batch 2 is published, and it is not"):
        batch(who)
    assert table.refs[MAIN] == first.id
    batch(who)
    assert table.rows(table.refs[MAIN]) == [1, 2]


def test_a_yes_without_a_commit_while_another_run_publishes_ends_this_run(table: MemoryTable) -> None:
    liar = Liar(table)
    who = Writer(liar, "a", patience=0)
    staged = stage(who)
    batch(writer(table, "b"))
    liar.lies = 1
    with pytest.raises(AnotherWriter):
        who.publish(staged)


def test_a_commit_that_is_reported_as_a_conflict_is_a_commit(table: MemoryTable) -> None:
    def gate(step: str) -> None:
        if step == "fast_forward.answer":
            raise Refused(step)

    assert batch(writer(table, "a", gate=gate)).id == table.refs[MAIN]


def test_an_earlier_attempt_that_lies_on_the_branch_is_not_taken_for_this_batch(table: MemoryTable) -> None:
    who = writer(table, "a")
    base = who.begin()
    stage(who, base)  # and given up
    stamp = Stamp("bronze.events", "a", 1, {"input": 2}, {"input": 0})
    table.set(who.branch, base.head)
    stale = stage(who, base).snapshot.id

    def pretends(branch: str, properties: object) -> None:
        table.set(branch, stale)  # neither the branch was moved nor anything written

    with pytest.raises(Moved):
        who.stage(base, stamp, pretends)


def test_a_snapshot_that_expired_is_not_there_any_more_although_it_was_seen(table: MemoryTable) -> None:
    who, client = writer(table, "a"), MemoryStore(table)
    first, second, third = (batch(who).id for _ in range(3))
    client.refresh()
    assert [one.id for one in client.ancestors(client.head())][:3] == [third, second, first]
    table.expire([second])
    client.refresh()
    assert client.snapshot(second) is None
    assert [one.id for one in client.ancestors(client.head())] == [third]
    assert client.recalled(second) is not None


def test_a_rollback_below_what_has_expired_is_no_other_writer(table: MemoryTable) -> None:
    earlier = batch(writer(table, "a")).id
    who = writer(table, "b")
    mine = [batch(who).id for _ in range(3)]
    MemoryStore(table).rollback(earlier)
    table.drop(who.branch)
    table.expire(mine)
    assert who.begin().head == earlier
    batch(who)
