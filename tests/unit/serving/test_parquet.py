"""The Parquet sink: one file that shows the table, whole or as it was before."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from pyiceberg.types import StringType
from served import Served

from lodestream import failpoints
from lodestream.errors import SinkUnavailable
from lodestream.serving import Parquet


class Killed(BaseException):
    """The process is gone; nothing may catch it."""


def die() -> None:
    raise Killed


def day(name: str, total: int) -> dict[str, object]:
    return {"day": name, "sum": total, "_lode_state": total, "_lode_order_x": "hidden"}


def test_the_file_shows_the_newest_snapshot_and_the_declared_columns_alone(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "out" / "daily.parquet"
    deliverer = served.deliverer("gold.daily", Parquet(file))
    served.replace([day("mon", 1)])
    deliverer.catch_up()
    newest = served.replace([day("mon", 2), day("tue", 3)])
    deliverer.catch_up()
    found = parquet.read_table(file)
    assert found.to_pylist() == [{"day": "mon", "sum": 2}, {"day": "tue", "sum": 3}]
    assert found.schema.metadata[b"lode.snapshot"] == str(newest).encode()
    assert [one.name for one in file.parent.iterdir()] == ["daily.parquet"]


def test_a_file_that_is_lost_or_broken_is_written_anew_whatever_is_remembered(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "daily.parquet"
    served.replace([day("mon", 1)])
    served.deliverer("gold.daily", Parquet(file)).catch_up()
    assert served.deliverer("gold.daily", Parquet(file)).catch_up().deliveries == 0
    file.write_bytes(b"PAR1 broken")
    assert served.deliverer("gold.daily", Parquet(file)).catch_up().deliveries == 1
    file.unlink()
    assert served.deliverer("gold.daily", Parquet(file)).catch_up().deliveries == 1
    assert parquet.read_table(file).num_rows == 1


def test_a_file_that_was_written_just_before_a_kill_is_known_to_be_current(served: Served, tmp_path: Path) -> None:
    sink = Parquet(tmp_path / "daily.parquet")
    served.replace([day("mon", 1)])
    served.deliverer("gold.daily", sink).catch_up()
    newest = served.replace([day("mon", 2)])
    failpoints.arm("sink.delivered", "gold.daily", die)
    with pytest.raises(Killed):
        served.deliverer("gold.daily", sink).catch_up()
    failpoints.disarm()
    assert served.deliverer("gold.daily", sink).catch_up().deliveries == 0
    assert str(served.positions.read("gold.daily/parquet")).endswith(f"/{newest}"), "what lode status shows"


def test_a_failure_while_the_file_is_written_leaves_the_one_before(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "daily.parquet"
    served.replace([day("mon", 1)])
    served.deliverer("gold.daily", Parquet(file)).catch_up()
    served.replace([day("mon", 2)])
    with monkeypatch.context() as broken:
        broken.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("no space left")))
        with pytest.raises(OSError, match="no space"):
            served.deliverer("gold.daily", Parquet(file)).catch_up()
    assert parquet.read_table(file).to_pylist() == [{"day": "mon", "sum": 1}]
    assert sorted(one.name for one in tmp_path.glob("*daily*")) == ["daily.parquet"]


def test_a_column_that_was_added_without_a_snapshot_stops_no_export(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "daily.parquet"
    served.replace([day("mon", 1)])
    with served.table("gold.daily").update_schema() as change:
        change.add_column("added", StringType())
    served.deliverer("gold.daily", Parquet(file)).catch_up()
    assert parquet.read_table(file).to_pylist() == [{"day": "mon", "sum": 1}]


def test_a_run_that_has_lost_the_table_does_not_bring_an_old_file_back(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "daily.parquet"
    served.replace([day("mon", 1)])
    late, other = (served.deliverer("gold.daily", Parquet(file)) for _ in range(2))
    late.catch_up()
    served.replace([day("mon", 2)])
    real = os.fsync

    def overtaken(number: int) -> None:
        monkeypatch.setattr("os.fsync", real)
        served.replace([day("mon", 3)])
        other.catch_up()
        real(number)

    monkeypatch.setattr("os.fsync", overtaken)
    with pytest.raises(SinkUnavailable, match="another run"):
        late.catch_up()
    assert parquet.read_table(file).to_pylist() == [{"day": "mon", "sum": 3}]


def test_drafts_of_killed_processes_do_not_stay(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "out" / "daily[1].parquet"
    file.parent.mkdir()
    old, young = (file.parent / f".{file.name}.{number}.draft" for number in (1, 2))
    for draft in (old, young):
        draft.write_bytes(b"half")
    os.utime(old, (0, 0))
    served.replace([day("mon", 1)])
    served.deliverer("gold.daily", Parquet(file)).catch_up()
    assert {one.name for one in file.parent.iterdir()} == {file.name, young.name}


def test_a_keyed_table_is_shown_without_the_place_of_its_changes(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "people.parquet"
    served.change_people([(1, 1, "ann"), (1, 2, "bob")], [(1, "ann"), (2, "bob")])
    served.deliverer("silver.people", Parquet(file), feed="silver.people__changes").catch_up()
    assert parquet.read_table(file).to_pylist() == [{"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}]
