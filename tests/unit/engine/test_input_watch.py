"""A flow is woken by any commit to its inputs, and not a second time by its own run's."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from lodestream.config import CatalogConfig, Config
from lodestream.engine.input_watch import InputWatch
from lodestream.tables.heads import SqliteHeads, heads_of


class Keeper:
    def __init__(self) -> None:
        self.state = "waiting"
        self.committed = -1.0
        self.looked = 0.0

    def looked_since(self, moment: float) -> bool:
        return self.looked >= moment


class Catalog:
    def __init__(self) -> None:
        self.heads: dict[str, str] | None = {"silver.a": "1", "bronze.a": "1"}

    def look(self) -> dict[str, str] | None:
        return None if self.heads is None else dict(self.heads)

    def commit(self, table: str) -> None:
        assert self.heads is not None
        self.heads[table] = str(int(self.heads.get(table, "0")) + 1)


@pytest.fixture
def clock() -> list[float]:
    return [100.0]


@pytest.fixture
def keeper() -> Keeper:
    return Keeper()


@pytest.fixture
def catalog() -> Catalog:
    return Catalog()


@pytest.fixture
def watch(catalog: Catalog, keeper: Keeper, clock: list[float]) -> InputWatch:
    inputs = {"gold.b": ["silver.a", "silver.a__changes"], "silver.a": ["bronze.a"]}
    found = InputWatch(catalog, inputs, {"silver.a": keeper, "silver.a__changes": keeper}, lambda: clock[0])
    assert found.look() == []
    return found


def later(watch: InputWatch, clock: list[float]) -> list[str]:
    clock[0] += 1
    return watch.look()


def test_a_commit_of_another_process_wakes_the_readers(watch: InputWatch, catalog: Catalog, clock: list[float]) -> None:
    catalog.commit("silver.a")
    assert later(watch, clock) == ["gold.b"]
    assert later(watch, clock) == [], "once"
    catalog.commit("bronze.a")
    assert later(watch, clock) == ["silver.a"], "whoever keeps it"
    catalog.commit("silver.a__changes")
    assert later(watch, clock) == ["gold.b"], "a feed, and one that was not there before"
    catalog.commit("lode.events")
    assert later(watch, clock) == [], "nobody reads it"


def test_an_own_commit_is_left_to_the_wake_up_that_follows_it(
    watch: InputWatch, catalog: Catalog, keeper: Keeper, clock: list[float]
) -> None:
    keeper.state = "running"
    catalog.commit("silver.a")
    assert later(watch, clock) == []
    for _ in range(4):
        keeper.committed = clock[0] + 0.5
        catalog.commit("silver.a")
        assert later(watch, clock) == []


def test_a_foreign_commit_between_own_ones_is_told_when_they_end(
    watch: InputWatch, catalog: Catalog, keeper: Keeper, clock: list[float]
) -> None:
    keeper.committed = clock[0] + 0.5
    catalog.commit("silver.a")
    assert later(watch, clock) == []
    assert later(watch, clock) == ["gold.b"]


def test_a_long_batch_of_the_keeper_hides_no_foreign_commit(
    watch: InputWatch, catalog: Catalog, keeper: Keeper, clock: list[float]
) -> None:
    keeper.state = "running"
    catalog.commit("silver.a")
    assert [later(watch, clock) for _ in range(7)].count(["gold.b"]) == 1


def test_a_catalog_that_is_busy_hides_no_commit(watch: InputWatch, catalog: Catalog, clock: list[float]) -> None:
    heads, catalog.heads = catalog.heads, None
    assert later(watch, clock) == []
    catalog.heads = heads
    catalog.commit("silver.a")
    assert later(watch, clock) == ["gold.b"]


def test_a_catalog_that_was_busy_at_the_start_hides_no_commit(
    catalog: Catalog, keeper: Keeper, clock: list[float]
) -> None:
    watch = InputWatch(catalog, {"gold.b": ["silver.a"]}, {"silver.a": keeper}, lambda: clock[0])
    heads, catalog.heads = catalog.heads, None
    assert watch.look() == []
    catalog.heads = heads
    catalog.commit("silver.a")
    assert later(watch, clock) == ["gold.b"], "what it was before is not known, so it may be news"
    assert later(watch, clock) == [], "once"


def test_without_such_a_query_each_idle_flow_looks_for_itself(keeper: Keeper, clock: list[float]) -> None:
    watch = InputWatch(None, {"gold.b": ["silver.a"]}, {"gold.b": keeper}, lambda: clock[0])
    keeper.looked = clock[0]
    assert [len(later(watch, clock)) for _ in range(6)] == [0, 0, 0, 0, 0, 1]


def test_every_table_in_one_query(tmp_path: Path) -> None:
    file = tmp_path / "a folder" / "catalog.db"
    heads = SqliteHeads(file, "lode")
    assert heads.look() is None, "a catalog that is missing is not made by looking"
    assert not file.exists()
    file.parent.mkdir()
    catalog = sqlite3.connect(file)
    catalog.execute(
        "CREATE TABLE iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, PRIMARY KEY "
        "(catalog_name, table_namespace, table_name))"
    )
    rows = [("lode", "silver", "a", "m1"), ("lode", "gold", "b", "m2"), ("other", "silver", "a", "m3")]
    catalog.executemany("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?)", rows)
    catalog.commit()
    assert heads.look() == {"silver.a": "m1", "gold.b": "m2"}
    catalog.execute("BEGIN EXCLUSIVE")
    assert heads.look() is None, "a writer has it for itself"
    catalog.rollback()
    catalog.close()


def test_only_the_embedded_catalog_has_the_query(tmp_path: Path) -> None:
    assert heads_of(Config(root=tmp_path)) is not None
    assert heads_of(Config(root=tmp_path, catalog=CatalogConfig(type="rest", uri="http://x"))) is None
