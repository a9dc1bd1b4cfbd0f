"""What can happen to a topic while a table reads it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions
from protocol_oracle import (
    BRONZE,
    Project,
    admin,
    check_all,
    check_bronze,
    consume,
    create_topic,
    delete_topic,
    event,
    send,
    topic_id,
    wait_until,
)

from lodestream import failpoints
from lodestream.engine import RunEnd, run_pipeline
from lodestream.errors import SourceGap, SourceRecreated
from lodestream.planning.project import open_project

SOURCE_CHANGED = 6


def once(project: Project, *, accept: bool = False) -> RunEnd:
    return run_pipeline(open_project(project.config), once=True, accept_gaps=[BRONZE] if accept else [])


def caught_up(project: Project) -> None:
    end = once(project)
    assert end.exit_code == 0, end


def bronze_error(end: RunEnd) -> BaseException | None:
    return end.flows[BRONZE].error


def test_recreated_topic_stops_the_flow_until_it_is_accepted(make_project: Callable[..., Project]) -> None:
    project = make_project()
    send(project.bootstrap, project.topic, range(200))
    caught_up(project)
    before, old = project.head(BRONZE), topic_id(project.bootstrap, project.topic)
    delete_topic(project.bootstrap, project.topic)
    create_topic(project.bootstrap, project.topic)
    # Past the old offsets in every partition: by numbers alone it would look like more of the same.
    for partition in range(3):
        send(project.bootstrap, project.topic, range(1000, 1300), partition=partition)

    end = once(project)
    assert isinstance(bronze_error(end), SourceRecreated), end
    assert end.exit_code == SOURCE_CHANGED
    assert project.head(BRONZE) == before
    assert old in str(bronze_error(end))
    assert "--accept-gap" in str(bronze_error(end))

    assert once(project, accept=True).exit_code == 0
    caught_up(project)
    decisions = [stamp for stamp in project.stamps(BRONZE) if "accepted-gap" in stamp.notes]
    assert len(decisions) == 1
    assert decisions[0].positions["kafka"][project.topic]["id"] != old
    assert len(project.rows(BRONZE)) == 200 + 900


def test_records_deleted_ahead_of_us_stop_the_flow_until_it_is_accepted(make_project: Callable[..., Project]) -> None:
    project = make_project(partitions=1)
    send(project.bootstrap, project.topic, range(100))
    caught_up(project)
    before = project.head(BRONZE)
    send(project.bootstrap, project.topic, range(100, 200))
    cut = TopicPartition(project.topic, 0, 150)
    for future in admin(project.bootstrap).delete_records([cut]).values():
        future.result(20)

    end = once(project)
    assert isinstance(bronze_error(end), SourceGap), end
    assert "50 records are gone" in str(bronze_error(end))
    assert end.exit_code == SOURCE_CHANGED
    assert project.head(BRONZE) == before

    assert once(project, accept=True).exit_code == 0
    caught_up(project)
    (decision,) = [stamp for stamp in project.stamps(BRONZE) if "accepted-gap" in stamp.notes]
    assert decision.started_from["kafka"][project.topic]["offsets"] == {"0": 100}
    assert decision.positions["kafka"][project.topic]["offsets"] == {"0": 150}
    assert sorted(row["offset"] for row in project.rows(BRONZE)) == [*range(100), *range(150, 200)]


@pytest.mark.parametrize("comes_back", [True, False])
def test_topic_replaced_while_it_is_read_publishes_nothing(
    make_project: Callable[..., Project], comes_back: bool
) -> None:
    project = make_project(partitions=1)
    send(project.bootstrap, project.topic, range(100))
    caught_up(project)
    before = project.head(BRONZE)
    send(project.bootstrap, project.topic, range(100, 200))

    def replaced() -> None:
        delete_topic(project.bootstrap, project.topic)
        if comes_back:
            create_topic(project.bootstrap, project.topic, 1)
            send(project.bootstrap, project.topic, range(1000, 1300))

    # The rows are written: whether all of them came from the topic that was planned, only its id can tell now.
    failpoints.arm("stage.after", BRONZE, replaced)
    try:
        end = once(project)
    finally:
        failpoints.disarm()
    assert isinstance(bronze_error(end), SourceRecreated), end
    assert project.head(BRONZE) == before


def test_deleted_topic_stops_the_flow(make_project: Callable[..., Project]) -> None:
    project = make_project(partitions=1)
    send(project.bootstrap, project.topic, range(50))
    caught_up(project)
    before = project.head(BRONZE)
    delete_topic(project.bootstrap, project.topic)
    end = once(project)
    assert isinstance(bronze_error(end), SourceRecreated), end
    assert project.head(BRONZE) == before


def test_partitions_added_while_the_table_is_kept(make_project: Callable[..., Project]) -> None:
    project = make_project(partitions=1)
    send(project.bootstrap, project.topic, range(100))
    caught_up(project)
    admin(project.bootstrap).create_partitions([NewPartitions(project.topic, 4)])[project.topic].result(20)
    for partition in range(4):
        numbers = range(100 + 50 * partition, 150 + 50 * partition)
        send(project.bootstrap, project.topic, numbers, partition=partition)
    caught_up(project)
    assert check_all(project) == 300


def test_aborted_transactions_never_enter_bronze(make_project: Callable[..., Project]) -> None:
    project = make_project(partitions=1)
    producer = Producer({"bootstrap.servers": project.bootstrap, "transactional.id": project.topic})
    producer.init_transactions(20)
    for first, end_transaction in ((0, producer.commit_transaction), (100, producer.abort_transaction)) * 2:
        producer.begin_transaction()
        for number in range(first, first + 100):
            producer.produce(project.topic, event(number))
        producer.flush(20)
        end_transaction(20)
    caught_up(project)
    assert check_all(project) == 200
    # An open transaction is not read, and does not hold up what came before it.
    producer.begin_transaction()
    producer.produce(project.topic, b"open")
    producer.flush(20)
    caught_up(project)
    assert len(project.rows(BRONZE)) == 200
    producer.abort_transaction(20)
    caught_up(project)
    check_bronze(project, consume(project.bootstrap, project.topic))


def test_records_deleted_from_a_partition_that_was_added_later_stop_the_flow_until_it_is_accepted(
    make_project: Callable[..., Project],
) -> None:
    project = make_project(partitions=1)
    send(project.bootstrap, project.topic, range(100))
    caught_up(project)
    before = project.head(BRONZE)
    admin(project.bootstrap).create_partitions([NewPartitions(project.topic, 2)])[project.topic].result(20)
    send(project.bootstrap, project.topic, range(100, 200), partition=1)
    wait_until("30 records less", lambda: deleted(project, TopicPartition(project.topic, 1, 30)), timeout=60)

    end = once(project)
    assert isinstance(bronze_error(end), SourceGap), end
    assert "partition 1: 30 records are gone" in str(bronze_error(end))
    assert project.head(BRONZE) == before

    assert once(project, accept=True).exit_code == 0
    caught_up(project)
    assert len(project.rows(BRONZE)) == 100 + 70


def deleted(project: Project, upto: TopicPartition) -> bool:
    """False while the client does not know who leads a partition that has just been added."""
    client = admin(project.bootstrap)
    client.list_topics(timeout=10)
    try:
        for future in client.delete_records([upto]).values():
            future.result(20)
    except KafkaException:
        return False
    return True
