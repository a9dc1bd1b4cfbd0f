"""Dirt comes at the stated rates, means what it says, and is counted."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta

import pytest
from generator import ALL_DIRT, Dirt, events, expected

N = 40_000


def values(n: int, seed: int, dirt: Dirt) -> list[bytes]:
    return [value for batch in events(n, seed, dirt) for value in batch.values.to_pylist()]


def readable(value: bytes) -> dict | None:
    """What a strict reader makes of it: an object with a pickup time, or nothing."""
    try:
        row = json.loads(value)
        datetime.fromisoformat(row["tpep_pickup_datetime"])
    except (ValueError, TypeError):
        return None
    return row


@pytest.fixture(scope="module")
def keyed() -> list[dict]:
    rows = [(place, readable(value)) for place, value in enumerate(values(N, 2, ALL_DIRT))]
    return [{**row, "place": place} for place, row in rows if row]


def test_every_rate_is_met():
    counts = expected(N, 2, ALL_DIRT)
    for name in ("duplicates", "late", "out_of_order", "corrections", "deletes", "malformed"):
        assert getattr(counts, name) / N == pytest.approx(getattr(ALL_DIRT, name), rel=0.2), name
    assert counts.events == N
    assert counts.trips + counts.corrections + counts.deletes + counts.duplicates + counts.malformed == N


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_no_reader_can_use_a_malformed_event_and_all_others_are_readable(share):
    dirt = Dirt(malformed=share)
    unreadable = sum(readable(value) is None for value in values(N // 4, 8, dirt))
    assert unreadable == expected(N // 4, 8, dirt).malformed
    assert unreadable / (N // 4) == pytest.approx(share, abs=0.02)


def test_malformed_events_come_in_every_style():
    spoiled = [value for value in values(5_000, 8, Dirt(malformed=0.3)) if readable(value) is None]
    assert b"" in spoiled
    for start in (b"\x00\xff", b"[", b"meter", b'{"V'):
        assert any(value.startswith(start) for value in spoiled), start
    assert any(b'"day ' in value and value.endswith(b"}") for value in spoiled)


def test_duplicates_are_exact_copies_of_an_earlier_event():
    seen: set[bytes] = set()
    repeats = 0
    for value in values(N, 4, Dirt(duplicates=0.03)):
        repeats += value in seen
        seen.add(value)
    assert repeats == expected(N, 4, Dirt(duplicates=0.03)).duplicates


def test_plain_events_add_up_to_what_silver_keeps():
    dirt = Dirt(duplicates=0.05, malformed=0.02, late=0.02)
    kept = set()
    for value in values(N, 6, dirt):
        row = readable(value)
        if row and row["fare_amount"] >= 0 and row["tpep_pickup_datetime"].startswith("2024-01"):
            kept.add(value)
    counts = expected(N, 6, dirt)
    assert len(kept) == counts.kept
    assert counts.rejected_duplicates > 0
    assert expected(1_000, 6, ALL_DIRT).kept is None


def test_late_and_out_of_order_events_fall_behind_their_neighbours_by_the_stated_time():
    dirt = Dirt(late=0.02, out_of_order=0.05)
    newest, late, disordered = datetime.min, 0, 0
    for value in values(N, 3, dirt):
        pickup = datetime.fromisoformat(json.loads(value)["tpep_pickup_datetime"])
        if pickup.strftime("%Y-%m") != "2024-01":
            continue
        # One lap of N events has about 67 s between neighbours.
        behind = newest - pickup if newest > pickup else timedelta()
        late += timedelta(minutes=10) <= behind
        disordered += timedelta() < behind < timedelta(minutes=10)
        assert behind < timedelta(hours=22)
        newest = max(newest, pickup)
    counts = expected(N, 3, dirt)
    assert late == pytest.approx(counts.late, rel=0.15)
    assert 0.7 * counts.out_of_order < disordered <= counts.out_of_order + counts.late


def test_only_changing_streams_carry_the_three_more_fields():
    plain = next(events(10, 1, Dirt(late=0.1)))
    assert plain.keys.null_count == 10
    assert "trip_uid" not in json.loads(plain.values[0].as_py())
    changing = next(events(10, 1, Dirt(deletes=0.1)))
    row = json.loads(changing.values[0].as_py())
    assert list(row)[-3:] == ["trip_uid", "op", "updated_at"]
    assert changing.keys[0].as_py().decode() == row["trip_uid"]


def test_corrections_and_deletes_follow_the_trip_they_change_and_are_newer(keyed):
    created = {row["trip_uid"]: row for row in reversed(keyed) if row["op"] == "c"}
    changes = [row for row in keyed if row["op"] != "c"]
    assert changes
    for row in changes:
        origin = created[row["trip_uid"]]
        assert origin["place"] < row["place"]
        assert origin["updated_at"] < row["updated_at"]


def test_a_correction_changes_the_fare_and_keeps_the_total_true(keyed):
    created = {row["trip_uid"]: row for row in keyed if row["op"] == "c"}
    for row in (row for row in keyed if row["op"] == "u"):
        origin = created[row["trip_uid"]]
        change = round(100 * row["fare_amount"]) - round(100 * origin["fare_amount"])
        assert change != 0
        assert round(100 * row["total_amount"]) - round(100 * origin["total_amount"]) == change


def test_some_corrections_move_a_trip_to_another_day_or_zone_but_not_out_of_the_month(keyed):
    created = {row["trip_uid"]: row for row in keyed if row["op"] == "c"}
    moves: Counter[str] = Counter()
    for row in (row for row in keyed if row["op"] == "u"):
        origin = created[row["trip_uid"]]
        moves["day"] += row["tpep_pickup_datetime"][:10] != origin["tpep_pickup_datetime"][:10]
        moves["zone"] += row["PULocationID"] != origin["PULocationID"]
        assert row["tpep_pickup_datetime"][:7] == origin["tpep_pickup_datetime"][:7]
    assert moves["day"] > 20
    assert moves["zone"] > 20


def test_some_trips_change_twice_and_out_of_order(keyed):
    by_trip: dict[str, list[str]] = {}
    for row in keyed:
        if row["op"] != "c":
            by_trip.setdefault(row["trip_uid"], []).append(row["updated_at"])
    twice = [times for times in by_trip.values() if len(set(times)) > 1]
    assert any(times != sorted(times) for times in twice)


@pytest.mark.parametrize("shares", [{"late": -0.1}, {"late": 0.5, "duplicates": 0.5}])
def test_impossible_shares_are_refused(shares):
    with pytest.raises(ValueError, match="share"):
        Dirt(**shares)
