"""What a Kafka source makes of offsets that are gone, whenever their partition appeared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from lodestream import Kafka
from lodestream.errors import SourceGap, SourceRecreated
from lodestream.flows.intake import SourceIntake
from lodestream.sources.kafka.admin import Topic
from lodestream.sources.kafka.reading import KafkaSource
from lodestream.sources.source import Position, Source
from lodestream.tables.snapshot import Stamp


class Cluster:
    """Topics by name: per partition the earliest offset and the end."""

    def __init__(self, **topics: list[tuple[int, int]]) -> None:
        self.held = topics

    def matching(self, pattern: str) -> list[str]:
        return sorted(self.held)

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        return {n: Topic(n, f"id-{n}", tuple(range(len(self.held[n])))) for n in names if n in self.held}

    def offsets(self, topics: Iterable[Topic], at: Any, isolation: str) -> dict[str, dict[int, int]]:
        which = 0 if at == "earliest" else 1
        return {t.name: {p: ends[which] for p, ends in enumerate(self.held[t.name])} for t in topics}


def source(cluster: Cluster, declared: Kafka | None = None) -> KafkaSource:
    return KafkaSource(None, declared or Kafka(pattern=".*"), cluster, {}, "group")  # type: ignore[arg-type]


def latest(kafka: KafkaSource) -> Position:
    found = kafka.latest()
    assert found is not None
    return found


def test_a_partition_that_appears_later_is_checked_for_a_gap() -> None:
    cluster = Cluster(trips=[(0, 10)])
    kafka = source(cluster)
    since = latest(kafka)
    cluster.held["trips"].append((0, 5))
    kafka.check(since, latest(kafka))
    cluster.held["trips"][1] = (3, 5)
    with pytest.raises(SourceGap, match=r"partition 1: 3 records are gone.*\n.*new to the table"):
        kafka.check(since, latest(kafka))


def test_a_topic_that_appears_later_is_checked_for_a_gap() -> None:
    cluster = Cluster(trips=[(0, 10)])
    kafka = source(cluster)
    since = latest(kafka)
    cluster.held["trips_b"] = [(7, 7)]
    with pytest.raises(SourceGap, match="topic trips_b partition 0: 7 records"):
        kafka.check(since, latest(kafka))


def test_accepting_a_gap_of_a_late_partition_goes_on_from_what_is_left_and_skips_nothing_else() -> None:
    cluster = Cluster(trips=[(0, 10)])
    kafka = source(cluster)
    since = {"kafka": latest(kafka)}
    cluster.held["trips"] = [(0, 15), (3, 5)]
    accepted = SourceIntake([kafka]).accepted(since)["kafka"]
    assert accepted["trips"]["offsets"] == {"0": 10, "1": 3}
    kafka.check(accepted, latest(kafka))


def test_accepting_helps_a_table_whose_declared_start_is_gone() -> None:
    cluster = Cluster(trips=[(100, 200)])
    kafka = source(cluster, Kafka("trips", start={"offsets": {"trips": {0: 50}}}))
    lookout = SourceIntake([kafka])
    with pytest.raises(SourceGap):
        lookout.span(None, {"kafka": latest(kafka)}, 1000)
    accepted = lookout.accepted({})["kafka"]
    assert accepted["trips"]["offsets"] == {"0": 100}
    kafka.check(accepted, latest(kafka))


class Skipping(KafkaSource):
    """Accepts as tables do: what was not read is skipped."""

    def accept(self, since: Position, latest: Position) -> Position:
        return latest


def test_accepting_a_gap_in_one_source_leaves_the_unread_rows_of_the_others() -> None:
    cluster, calm = Cluster(trips=[(0, 10)]), Cluster(zones=[(0, 10)])
    broken, other = source(cluster), Skipping(None, Kafka(pattern=".*"), calm, {}, "group")  # type: ignore[arg-type]
    other.name = "other"
    since = {"kafka": latest(broken), "other": latest(other)}
    cluster.held["trips"], calm.held["zones"] = [(12, 15)], [(0, 30)]

    sources: list[Source] = [broken, other]
    accepted = SourceIntake(sources).accepted(since)
    assert accepted["kafka"]["trips"]["offsets"] == {"0": 12}
    assert accepted["other"] == since["other"]


def test_a_topic_that_was_made_anew_stops_an_idle_flow_before_its_records_are_as_many_as_we_have_read() -> None:
    cluster = Cluster(trips=[(0, 10)])
    kafka = source(cluster)
    lookout, since = SourceIntake([kafka]), {"kafka": latest(kafka)}
    assert not lookout.news(since, {"kafka": latest(kafka)})
    cluster.held["trips"].append((0, 0))
    assert not lookout.news(since, {"kafka": latest(kafka)}), "an empty partition is no news"
    cluster.topics = lambda names: {n: Topic(n, "another", (0, 1)) for n in names}  # type: ignore[method-assign]
    cluster.held["trips"][0] = (0, 3)
    now = {"kafka": latest(kafka)}
    assert lookout.news(since, now)
    with pytest.raises(SourceRecreated):
        lookout.span(Stamp("bronze.trips", "run", 1, since, None), now, 1000)
