"""What a decoder's own contract requires of an event."""

from __future__ import annotations

from pathlib import Path

from lodestream import Avro, Debezium, Json
from lodestream.contracts import Contract, Field, contract_yaml
from lodestream.sources.codecs.required import Required

EVENT = Contract(
    "event",
    "1.0.0",
    (
        Field("id", "bigint"),
        Field("total", "double", required=True, source="amount"),
        Field("place", "struct<lat:double>", fields=(Field("lat", "double", required=True),)),
        Field("note", "string"),
    ),
    keys=("id",),
)


def of(folder: Path, decl: object, delete_when: str | None = None) -> Required:
    (folder / "event.yaml").write_text(contract_yaml(EVENT))
    return Required.of(decl, folder, delete_when)  # type: ignore[arg-type]


def test_required_values_and_keys_are_missed_by_the_names_that_they_have_in_the_event(tmp_path: Path) -> None:
    found = of(tmp_path, Json("event.yaml"))
    assert [one.reason for one in found.missing] == ["id is null", "amount is null", "place.lat is null"]
    assert found.missing[1].sql == "(`amount` IS NULL)"
    assert found.unless is None


def test_a_schema_and_the_tables_own_contract_require_nothing_of_an_event(tmp_path: Path) -> None:
    assert of(tmp_path, Json("id bigint")).missing == ()
    assert of(tmp_path, Json()).missing == ()


def test_other_formats_name_their_contract_in_columns(tmp_path: Path) -> None:
    assert len(of(tmp_path, Avro(registry="http://r", columns="event.yaml")).missing) == 3


def test_deletes_may_lack_values(tmp_path: Path) -> None:
    captured = of(tmp_path, Debezium(Json("event.yaml")))
    assert len(captured.missing) == 3
    assert "__op IN ('d'" in (captured.unless or "")
    keyed = of(tmp_path, Json("event.yaml"), "op = 'd'")
    assert keyed.unless == "coalesce((op = 'd'\n), false)"
