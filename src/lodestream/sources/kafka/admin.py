"""What a Kafka cluster says of its topics: identity and offsets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from lodestream.errors import BrokerUnavailable, ConfigError
from lodestream.sources.kafka.declaration import Isolation

Offsets = dict[str, dict[int, int]]
Moment = Literal["earliest", "latest"] | int
_UNKNOWN = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)
_REFUSED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError._AUTHENTICATION,
)


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    id: str
    partitions: tuple[int, ...]


class KafkaAdmin:
    """A thin, typed face of AdminClient that raises our errors."""

    def __init__(self, bootstrap: str, options: Mapping[str, str], *, timeout: float = 10.0) -> None:
        self.bootstrap = bootstrap
        self._timeout = timeout
        settings: dict[str, str | int | float] = {
            "bootstrap.servers": bootstrap,
            "socket.timeout.ms": int(timeout * 1000),
            "log_level": 0,
        }
        self._client = AdminClient({**settings, **options})

    def matching(self, pattern: str) -> list[str]:
        compiled = re.compile(pattern)
        metadata = self._ask(lambda: self._client.list_topics(timeout=self._timeout))
        return sorted(name for name in metadata.topics if compiled.fullmatch(name))

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        """The topics that exist, with the id that a recreated topic does not share."""
        found = {}
        for name, future in self._ask(lambda: self._client.describe_topics(TopicCollection(list(names)))).items():
            described = self._existing(future)
            if described is not None:
                partitions = tuple(sorted(p.id for p in described.partitions))
                found[name] = Topic(name, str(described.topic_id), partitions)
        return found

    def offsets(self, topics: Iterable[Topic], at: Moment, isolation: Isolation) -> Offsets:
        """The offsets at the beginning, at the end, or of the first record at or after a time (epoch ms; -1: none)."""
        spec = _spec(at)
        wanted = {TopicPartition(topic.name, p): spec for topic in topics for p in topic.partitions}
        if not wanted:
            return {}
        level = IsolationLevel.READ_COMMITTED if isolation == "read_committed" else IsolationLevel.READ_UNCOMMITTED
        answers = self._ask(lambda: self._client.list_offsets(wanted, isolation_level=level))
        result: Offsets = {}
        for partition, future in answers.items():
            answer = self._existing(future)
            if answer is None:
                # The topic was there a moment ago: a broker that is starting, or a topic that is being deleted.
                raise BrokerUnavailable(f"Kafka at {self.bootstrap} does not know {partition.topic} yet, or any more")
            result.setdefault(partition.topic, {})[partition.partition] = answer.offset
        return result

    def _existing(self, future: Future[Any]) -> Any:
        try:
            return future.result(timeout=self._timeout)
        except KafkaException as error:
            if error.args[0].code() in _UNKNOWN:
                return None
            raise self._unavailable(error) from error
        except TimeoutError as error:
            raise self._unavailable(error) from error

    def _ask(self, call: Any) -> Any:
        try:
            return call()
        except KafkaException as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> BrokerUnavailable | ConfigError:
        cause = error.args[0] if error.args else error
        if isinstance(cause, KafkaError) and cause.code() in _REFUSED:
            return ConfigError(
                f"Kafka at {self.bootstrap} refused us",
                why=str(cause.str()),
                fix="check [profiles.*.kafka] options: security.protocol, sasl.* and the access rules of the topic",
            )
        return BrokerUnavailable(
            f"Kafka at {self.bootstrap} does not answer",
            why=str(cause) or type(error).__name__,
            fix="check that the broker runs (`lode broker status`, `lode doctor`)",
        )


def _spec(at: Moment) -> Any:
    specs: Any = OffsetSpec
    if isinstance(at, int):
        return specs.for_timestamp(at)
    return specs.latest() if at == "latest" else specs.earliest()
