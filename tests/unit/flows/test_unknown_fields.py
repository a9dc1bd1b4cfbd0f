"""Fields that no contract names are told, but not for ever: their names may be data."""

from __future__ import annotations

from typing import Any

from lodestream import Json
from lodestream.sources.codecs import codec_for
from lodestream.sources.codecs.frame import Decoder, UnknownFields


def told(fields: UnknownFields, *names: str) -> list[str]:
    seen: Any = {"unknown": len(names), "unknown_names": list(names)}
    return fields.news(seen)


def json_fields() -> UnknownFields:
    return UnknownFields(Decoder(codec_for(Json("id bigint"))))


def test_a_name_is_told_once() -> None:
    fields = json_fields()
    assert told(fields, "b", "a") == ["a", "b"]
    assert told(fields, "a", "c") == ["c"]


def test_names_that_never_come_again_are_not_remembered_for_ever() -> None:
    fields = json_fields()
    news = [told(fields, *(f"user {batch} {number}" for number in range(500))) for batch in range(200)]
    assert news[0]
    assert not news[-1], "nobody learns from the thousandth"
    assert len(fields._told) <= 1_000
