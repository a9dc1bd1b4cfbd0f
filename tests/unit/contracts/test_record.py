"""Contracts as Python classes."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest

from lodestream.contracts import Field, Key, Limits, Masking, Reading, Record, Rule, column
from lodestream.errors import ContractError


class Place(Record):
    """Where."""

    lat: float
    lon: float | None


class Trip(Record):
    """One taxi trip."""

    version = "1.0.0"
    owner = "mobility"
    event_time = "pickup"
    lateness = "15 min"
    freshness = "5 s"
    limit = "5 % over 1 min"

    trip_id: Annotated[str, Key()]
    pickup: datetime
    date: date
    fare: Decimal = column("decimal(10,2)", minimum=0, rounding="half_up", description="As metered.")
    seats: Annotated[int, "int"] | None
    flag: Literal["Y", "N"] | None
    place: Place | None
    stops: list[Place] | None
    labels: dict[str, int] | None
    phone: str | None = column(classification="pii", masking="last 4", aliases=["mobile"], name="Phone number")
    anything: Any | None = column("map<string,array<bigint>>")

    rules = [Rule("fare is below 1000", "fare < 1000", "warn")]  # noqa: RUF012


def test_annotations_become_columns() -> None:
    contract = Trip.contract()
    assert contract.ddl() == (
        "`trip_id` string, `pickup` timestamp, `date` date, `fare` decimal(10,2), `seats` int, `flag` string, "
        "`place` struct<lat:double,lon:double>, `stops` array<struct<lat:double,lon:double>>, "
        "`labels` map<string,bigint>, `Phone number` string, `anything` map<string,array<bigint>>"
    )
    assert [field.name for field in contract.fields if field.required] == ["trip_id", "pickup", "date", "fare"]
    assert contract.keys == ("trip_id",)


def test_attributes_become_what_the_contract_says_of_itself() -> None:
    contract = Trip.contract()
    assert (contract.name, contract.title, contract.description) == ("trip", "trip 1.0.0", "One taxi trip.")
    assert (contract.owner, contract.lateness, contract.freshness, str(contract.limit)) == (
        "mobility",
        900,
        5,
        "5 % over 1 min",
    )
    assert contract["fare"].limits == Limits(minimum=0)
    assert contract["fare"].reading == Reading(rounding="half_up")
    assert contract["flag"].limits.values == ("Y", "N")
    assert contract["Phone number"].masking == Masking("last", 4)
    assert contract["Phone number"].aliases == ("mobile",)
    assert contract["place"].fields == (Field("lat", "double", required=True), Field("lon", "double"))


class Corrected(Trip, name="corrections", version="1.1.0"):
    op: Literal["c", "u", "d"]


def test_a_record_inherits_columns_and_settings() -> None:
    contract = Corrected.contract()
    assert (contract.title, contract.owner) == ("corrections 1.1.0", "mobility")
    assert [field.name for field in contract.fields][0::11] == ["trip_id", "op"]


def test_wrong_classes_are_refused_with_a_fix() -> None:
    class Vague(Record):
        fare: Decimal

    with pytest.raises(ContractError, match=r'column\("decimal\(10,2\)"\)'):
        Vague.contract()

    class Torn(Record):
        fare: int | str

    with pytest.raises(ContractError, match="several types"):
        Torn.contract()

    class Ruled(Record):
        fare: float
        rules = [Rule("r", "fair > 0")]  # noqa: RUF012

    with pytest.raises(ContractError, match="did you mean fare"):
        Ruled.contract()

    with pytest.raises(ContractError, match="did you mean minimum"):
        column(minimun=3)


def test_the_example_in_the_docstring_of_record_runs() -> None:
    text = "\n".join(line[4:] for line in (Record.__doc__ or "").splitlines()[2:])
    space: dict[str, Any] = {"__name__": __name__}
    exec(text, {**globals(), **space}, space)
    assert space["Trip"].contract().keys == ("trip_id",)
