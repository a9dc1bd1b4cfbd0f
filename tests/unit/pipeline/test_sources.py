"""Source declarations are checked where they are written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from lodestream import Avro, Files, Kafka, Protobuf
from lodestream.config import Secret
from lodestream.errors import DeclarationError


def test_kafka_keeps_what_was_said() -> None:
    source = Kafka("a", "b", start="latest", options={"security.protocol": "SSL"}, bootstrap="h:1")
    assert (source.topics, source.start, source.bootstrap) == (("a", "b"), "latest", "h:1")
    assert source.isolation == "read_committed"
    assert Kafka(pattern="taxi[.].*").pattern == "taxi[.].*"
    assert Kafka("a") == Kafka("a")


@pytest.mark.parametrize(
    "start",
    [
        {"timestamp": "2024-01-01T00:00:00Z"},
        {"timestamp": datetime(2024, 1, 1, tzinfo=UTC)},
        {"timestamp": 1704067200000},
    ],
)
def test_a_start_by_time_needs_a_zone(start: Any) -> None:
    assert Kafka("a", start=start).start == start
    with pytest.raises(DeclarationError, match="no starting point"):
        Kafka("a", start={"timestamp": "2024-01-01T00:00:00"})


def test_offsets_may_leave_out_the_only_topic() -> None:
    assert Kafka("a", start={"offsets": {0: 5}}).start == {"offsets": {"a": {0: 5}}}
    assert Kafka("a", "b", start={"offsets": {"b": {"1": 7}}}).start == {"offsets": {"b": {1: 7}}}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "topics or a pattern"),
        ({"topics": ("a",), "pattern": "a"}, "not both"),
        ({"topics": ("a b",)}, "no topic name"),
        ({"pattern": "("}, "regular expression"),
        ({"topics": ("a",), "start": "first"}, "no starting point"),
        ({"topics": ("a",), "start": {"offsets": {0: -1}}}, "are wrong"),
        ({"topics": ("a",), "start": {"offsets": {"b": {0: 1}}}}, "not read"),
        ({"topics": ("a",), "isolation": "dirty"}, "read_committed"),
        ({"topics": ("a",), "options": {"securty.protocol": "SSL"}}, "did you mean security.protocol?"),
        ({"topics": ("a",), "options": {"group.id": "mine"}}, "the engine keeps positions"),
    ],
)
def test_what_kafka_refuses(given: dict[str, Any], words: str) -> None:
    topics = given.pop("topics", ())
    with pytest.raises(DeclarationError) as caught:
        Kafka(*topics, **given)
    assert words in str(caught.value)
    assert caught.value.file == __file__


def test_a_secret_is_never_written_in_a_pipeline() -> None:
    with pytest.raises(DeclarationError, match="plain text") as caught:
        Kafka("a", options={"sasl.password": "hunter2"})
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(Kafka("a", options={"sasl.password": Secret("hunter2")}))


def test_files_and_decoders_check_themselves() -> None:
    assert Files("in", settle="500 ms").settle_seconds == 0.5
    with pytest.raises(DeclarationError, match="unknown file format"):
        Files("in", format="xml")  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match="settle"):
        Files("in", settle="a while")
    with pytest.raises(DeclarationError, match="schema or a registry"):
        Avro()
    with pytest.raises(DeclarationError, match="descriptor"):
        Protobuf(message="taxi.Trip")
