"""`lode changes` on real Iceberg tables, without a JVM: every change once, however it is paged."""

from __future__ import annotations

import json
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.io.pyarrow import _dataframe_to_data_files

from lodestream.cli.main import run_command
from lodestream.config import load_config
from lodestream.engine.changes import TableChanges, read_changes
from lodestream.errors import ConfigError, SourceRewritten
from lodestream.planning.project import Project, open_project
from lodestream.recovery.choice import parse_moment, refuse_ambiguous
from lodestream.starter import write_project
from lodestream.tables import row_changes
from lodestream.tables.inspect import TableView

ORDERS = pa.schema([("order_id", pa.string()), ("amount", pa.int64())])
REVENUE = pa.schema(
    [("day", pa.string()), ("revenue", pa.float64()), ("tags", pa.list_(pa.string())), ("_lode_state", pa.int64())]
)


class Shop:
    def __init__(self, folder: Path) -> None:
        write_project(folder)
        config = load_config(folder)
        config.state_dir.mkdir()
        place = {"uri": config.catalog_uri().removeprefix("jdbc:"), "warehouse": config.warehouse()}
        self._catalog = load_catalog(config.catalog.name, type="sql", **place)
        for space in ("silver", "gold"):
            self._catalog.create_namespace(space)
        self.orders = self._catalog.create_table("silver.orders", ORDERS)
        self.revenue = self._catalog.create_table("gold.daily_revenue", REVENUE)
        self.folder = folder
        self.project: Project = open_project(config)

    def append(self, first: int, count: int, files: int = 1) -> int:
        """One snapshot of so many rows, in so many files."""
        rows = [{"order_id": f"o-{n}", "amount": n} for n in range(first, first + count)]
        each = -(-count // files)
        with self.orders.transaction() as moved, moved.update_snapshot().fast_append() as added:
            for start in range(0, count, each):
                part = pa.Table.from_pylist(rows[start : start + each], ORDERS)
                for file in _dataframe_to_data_files(moved.table_metadata, part, self.orders.io):
                    added.append_data_file(file)
        return int(self.orders.current_snapshot().snapshot_id)

    def replace(self, rows: list[dict[str, Any]], keep: int = 0) -> int:
        """One overwrite, as Gold is written: the files after the first `keep` go, the rows come in a new one."""
        tasks = sorted(self.revenue.scan().plan_files(), key=lambda task: task.file.file_path)
        with self.revenue.transaction() as moved, moved.update_snapshot().overwrite() as changed:
            for task in tasks[keep:]:
                changed.delete_data_file(task.file)
            part = pa.Table.from_pylist(rows, REVENUE)
            for file in _dataframe_to_data_files(moved.table_metadata, part, self.revenue.io):
                changed.append_data_file(file)
        return int(self.revenue.current_snapshot().snapshot_id)

    def changes(self, table: str, **asked: Any) -> TableChanges:
        return read_changes(self.project, table, **asked)

    def paged(self, table: str, limit: int) -> list[Any]:
        """As a program follows the feed: from place to place until there is no more."""
        found, since = [], None
        for _ in range(10_000):
            page = self.changes(table, since=since, limit=limit)
            found += page.changes
            since = page.next
            if not page.more:
                return found
        raise AssertionError("the feed does not end")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop")


def day(name: str, revenue: float, state: int = 0, tags: list[str] | None = None) -> dict[str, Any]:
    return {"day": name, "revenue": revenue, "tags": tags, "_lode_state": state}


def told(found: TableChanges) -> list[tuple[int, str, float]]:
    return [(one.weight, one.row["day"], one.row["revenue"]) for one in found.changes]


def test_following_the_next_place_gives_every_change_once(shop: Shop) -> None:
    shop.append(0, 11, files=3)
    shop.append(11, 1)
    shop.append(12, 13, files=2)
    everything = shop.changes("silver.orders", limit=0)
    assert sorted(one.row["amount"] for one in everything.changes) == list(range(25))
    for limit in (2, 7, 11, 12, 100):
        assert shop.paged("silver.orders", limit) == list(everything.changes)


def test_a_position_means_the_same_after_the_snapshot_before_it_has_expired(shop: Shop) -> None:
    for first in (0, 4, 8):
        shop.append(first, 4)
    everything = list(shop.changes("silver.orders", limit=0).changes)
    page = shop.changes("silver.orders", limit=9)
    shop.orders.maintenance.expire_snapshots().by_ids(older(shop.orders)).commit()
    rest = shop.changes("silver.orders", since=page.next, limit=0)
    assert [one.row for one in (*page.changes, *rest.changes)] == [one.row for one in everything]


def test_a_position_among_all_rows_of_a_snapshot_says_so(shop: Shop) -> None:
    for first in (0, 4, 8):
        shop.append(first, 4)
    shop.orders.maintenance.expire_snapshots().by_ids(older(shop.orders)).commit()
    everything = list(shop.changes("silver.orders", limit=0).changes)
    assert sorted(one.row["amount"] for one in everything) == list(range(12))
    page = shop.changes("silver.orders", limit=9)
    assert str(page.next).endswith(":9:all")
    assert shop.paged("silver.orders", 5) == everything


def older(table: Any) -> list[int]:
    return [one.snapshot_id for one in table.refresh().snapshots() if one != table.current_snapshot()]


def test_the_end_is_a_place_to_wait_at(shop: Shop) -> None:
    shop.append(0, 5)
    end = shop.changes("silver.orders", limit=5)
    assert (len(end.changes), end.more) == (5, False)
    assert shop.changes("silver.orders", since=end.next).changes == ()
    shop.append(5, 3)
    later = shop.changes("silver.orders", since=end.next)
    assert [one.row["amount"] for one in later.changes] == [5, 6, 7]


def test_a_snapshot_alone_is_the_place_after_all_of_it(shop: Shop) -> None:
    first = shop.append(0, 5)
    shop.append(5, 2)
    assert [one.row["amount"] for one in shop.changes("orders", since=str(first)).changes] == [5, 6]
    assert [one.row["amount"] for one in shop.changes("orders", since=f"{first}:4").changes] == [4, 5, 6]
    with pytest.raises(ConfigError, match="has no snapshot 7"):
        shop.changes("orders", since="7:1")


def test_a_table_that_is_replaced_in_place_tells_what_came_and_went(shop: Shop) -> None:
    shop.replace([day("mon", 1.0), day("tue", 2.0), day("wed", 3.0, tags=["a"])])
    shop.replace([day("mon", 1.0, state=9), day("tue", 2.5), day("wed", 3.0, tags=["a"]), day("thu", 4.0)])
    shop.replace([day("mon", 1.0)])
    everything = shop.changes("gold.daily_revenue", limit=0)
    assert told(everything) == [
        (1, "mon", 1.0),
        (1, "tue", 2.0),
        (1, "wed", 3.0),
        (-1, "tue", 2.0),
        (1, "tue", 2.5),
        (1, "thu", 4.0),
        (-1, "tue", 2.5),
        (-1, "wed", 3.0),
        (-1, "thu", 4.0),
    ]
    assert all("_lode_state" not in one.row for one in everything.changes)
    for limit in (2, 3):
        assert shop.paged("gold.daily_revenue", limit) == list(everything.changes)


def test_files_that_stay_are_not_read(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.replace([day("mon", 1.0), day("tue", 2.0)])
    first = shop.replace([day("wed", 3.0)], keep=1)
    read: list[str] = []
    rows = row_changes._rows
    monkeypatch.setattr(row_changes, "_rows", lambda v, s, task: read.append(task.file.file_path) or rows(v, s, task))
    shop.replace([day("wed", 5.0)], keep=1)
    kept = {task.file.file_path for task in shop.revenue.scan().plan_files()}
    found = shop.changes("gold.daily_revenue", since=str(first))
    assert sum(one.weight for one in found.changes) in (0, 1, -1)
    assert len(set(read) & kept) == 1, "of the two files that are there, one is new"


def test_equal_rows_count_one_by_one(shop: Shop) -> None:
    first = shop.replace([day("mon", 1.0), day("mon", 1.0), day("mon", 1.0)])
    shop.replace([day("mon", 1.0)])
    assert told(shop.changes("gold.daily_revenue", since=str(first))) == [(-1, "mon", 1.0)] * 2


def test_a_large_comparison_goes_in_parts_and_gives_the_same(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    first = shop.replace([day(f"d{n}", float(n)) for n in range(300)])
    shop.replace([day(f"d{n}", float(n + n % 3)) for n in range(50, 350)])
    whole = shop.changes("gold.daily_revenue", since=str(first), limit=0)
    monkeypatch.setattr(row_changes, "MOST_COMPARED", 100)
    parts = shop.changes("gold.daily_revenue", since=str(first), limit=0)
    assert Counter(told(parts)) == Counter(told(whole))
    same = sum(1 for n in range(50, 300) if n % 3 == 0)
    assert len(parts.changes) == 2 * (300 - same)
    held: Counter[tuple[str, float]] = Counter({(f"d{n}", float(n)): 1 for n in range(300)})
    for weight, name, revenue in told(parts):
        held[name, revenue] += weight
    assert +held == Counter({(f"d{n}", float(n + n % 3)): 1 for n in range(50, 350)})
    weights = [weight for weight, _, _ in told(parts)]
    assert weights == sorted(weights), "who keeps rows by a key takes the old one away before the new one comes"


def test_history_that_has_expired_is_told_as_the_rows_it_left(shop: Shop) -> None:
    old = shop.replace([day("mon", 1.0)])
    middle = shop.replace([day("mon", 2.0), day("tue", 1.0)])
    shop.replace([day("mon", 3.0), day("tue", 1.0)])
    shop.revenue.maintenance.expire_snapshots().by_id(old).commit()
    assert told(shop.changes("gold.daily_revenue")) == [
        (1, "mon", 2.0),
        (1, "tue", 1.0),
        (-1, "mon", 2.0),
        (1, "mon", 3.0),
    ]
    with pytest.raises(ConfigError, match="has no snapshot"):
        shop.changes("gold.daily_revenue", since=str(old))
    shop.revenue.maintenance.expire_snapshots().by_id(middle).commit()
    assert len(shop.changes("gold.daily_revenue").changes) == 2


def test_what_was_appended_after_a_place_that_has_expired_is_all_there(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark forgets the snapshot and leaves its number with the child; PyIceberg takes that away too."""
    first, replaced = shop.append(0, 3), shop.replace([day("mon", 1.0)])
    shop.append(3, 2)
    shop.replace([day("mon", 2.0)])
    kept = TableView._snapshots.func
    forgotten = cached_property(lambda view: {n: one for n, one in kept(view).items() if n not in (first, replaced)})
    forgotten.__set_name__(TableView, "_snapshots")
    monkeypatch.setattr(TableView, "_snapshots", forgotten)
    with pytest.raises(SourceRewritten, match="can no longer be compared"):
        shop.changes("gold.daily_revenue", since=str(replaced))
    assert [one.row["amount"] for one in shop.changes("orders", since=str(first)).changes] == [3, 4]
    assert len(shop.changes("orders").changes) == 5


def test_the_command_gives_places_to_go_on_from(shop: Shop, capfd: pytest.CaptureFixture[str]) -> None:
    shop.append(0, 12, files=2)

    def run(*words: str) -> tuple[str, str]:
        assert run_command(["--project", str(shop.folder), "changes", "orders", *words]) == 0
        return capfd.readouterr()

    out, err = run("--limit", "5")
    shown = [int(line.rpartition("=")[2]) for line in out.splitlines()]
    place = err.split("--since ")[1].split(",")[0]
    assert place.endswith(":5:all"), "of a first snapshot nothing was before"
    for limit in ("100", "0"):
        rest = json.loads(run("--since", place, "--limit", limit, "--json")[0])
        assert sorted(shown + [one["row"]["amount"] for one in rest["changes"]]) == list(range(12))
        assert (rest["more"], rest["table"]) == (False, "silver.orders")
        assert json.loads(run("--since", rest["next"], "--json", "--limit", limit)[0])["changes"] == []
    assert len(run("--limit", "0")[0].splitlines()) == 12


def test_a_column_that_is_null_is_told_as_null(shop: Shop, capfd: pytest.CaptureFixture[str]) -> None:
    shop.replace([{"day": "monday", "revenue": None, "tags": None, "_lode_state": 1}])
    assert run_command(["--project", str(shop.folder), "changes", "gold.daily_revenue"]) == 0
    assert capfd.readouterr().out.rstrip().endswith("Z + day=monday  revenue=null  tags=null")
    for limit in ("100", "0"):
        words = ["--project", str(shop.folder), "changes", "gold.daily_revenue", "--json", "--limit", limit]
        assert run_command(words) == 0
        (told,) = json.loads(capfd.readouterr().out)["changes"]
        assert told["row"] == {"day": "monday", "revenue": None, "tags": None}


def test_digits_that_are_a_day_and_a_snapshot_are_refused_with_both_by_every_command(shop: Shop) -> None:
    for reads in (lambda text: read_changes(shop.project, "silver.orders", since=text), parse_moment):
        with pytest.raises(ConfigError, match="the day 2026-11-17 or a snapshot") as refused:
            reads("20261117")
        assert "write 2026-11-17" in (refused.value.fix or "")
    assert parse_moment("2026-11-17").date().isoformat() == "2026-11-17"


@pytest.mark.parametrize("snapshot", [5183112111908428419, 2024013110203040, 20240131102030])
def test_the_digits_of_a_snapshot_are_never_a_day(snapshot: int) -> None:
    refuse_ambiguous(str(snapshot))
    with pytest.raises(ConfigError, match="is no time"):
        parse_moment(str(snapshot))
