"""A keyed Silver table follows a real PostgreSQL table through a real Debezium, whatever happens to either."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cdc_project import CdcProject
from connect import Connect
from postgres import Postgres, wait_until

from lodestream.config import Config

if TYPE_CHECKING:
    from lodestream.runtime.broker import BrokerInfo

ROUNDS = int(os.environ.get("LODE_CDC_ROUNDS", "1"))
SEED = int(os.environ.get("LODE_SEED", "5"))
TABLE = "CREATE TABLE customers (id int PRIMARY KEY, name text, region text, credit int)"
REGIONS = ("north", "south", "east", "west")


class Pipe:
    """PostgreSQL, Debezium, Kafka and a driver, in a row."""

    def __init__(self, database: Postgres, connect: Connect, project: CdcProject) -> None:
        self.database = database
        self.connect = connect
        self.project = project
        self._rng = random.Random(SEED)
        self._next = 1000

    def arrives(self, after: str) -> None:
        """Silver is the table as PostgreSQL has it now, and Gold the sums over it."""
        wanted = Counter(self.database.execute("SELECT id, name, region, credit FROM customers"))
        sums = Counter(self.database.execute("SELECT region, count(*), sum(credit) FROM customers GROUP BY region"))
        wait_until(
            f"equal after {after}: {self._difference(wanted)}",
            lambda: self._held() == wanted and self._summed() == sums,
            timeout=90,
            otherwise=lambda: f"{self._difference(wanted)}\n{self.project.said()}\n{self.connect.said()}",
        )

    def changes(self, count: int = 40) -> None:
        """Inserts, updates, deletes, other keys, and several changes of one row in one transaction."""
        for _ in range(count):
            self.database.execute(self._change())

    def _change(self) -> str:
        rng, some = self._rng, f"(SELECT id FROM customers ORDER BY md5(id::text || '{self._next}') LIMIT 1)"
        self._next += 1
        region = rng.choice(REGIONS)
        return rng.choice(
            (
                f"INSERT INTO customers VALUES ({self._next}, 'new {self._next}', '{region}', {rng.randrange(500)})",
                f"UPDATE customers SET region = '{region}', credit = credit + 1 WHERE id = {some}",
                f"UPDATE customers SET name = NULL WHERE id = {some}",
                f"DELETE FROM customers WHERE id = {some}",
                f"UPDATE customers SET id = {self._next} WHERE id = {some}",
                f"BEGIN; INSERT INTO customers VALUES ({self._next}, 'x', '{region}', 1);"
                f"DELETE FROM customers WHERE id = {self._next};"
                f"INSERT INTO customers VALUES ({self._next}, 'y', '{region}', 2);"
                f"UPDATE customers SET credit = 3 WHERE id = {self._next}; COMMIT",
                "BEGIN; UPDATE customers SET credit = 0; ROLLBACK",
            )
        )

    def _held(self) -> Counter[Any]:
        columns = ("id", "name", "region", "credit")
        return Counter(tuple(_text(row[name]) for name in columns) for row in self.project.rows("silver.customers"))

    def _summed(self) -> Counter[Any]:
        columns = ("region", "customers", "credit")
        return Counter(tuple(_text(row[name]) for name in columns) for row in self.project.rows("gold.credit"))

    def _difference(self, wanted: Counter[Any]) -> str:
        held = self._held()
        return f"missing {list(wanted - held)[:3]}, too many {list(held - wanted)[:3]}"


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


@pytest.fixture
def pipe(database: Postgres, broker: BrokerInfo, tmp_path: Path) -> Iterator[Pipe]:
    names = ", ".join(f"({n}, 'customer {n}', '{REGIONS[n % 4]}', {n})" for n in range(1, 201))
    database.execute(TABLE, f"INSERT INTO customers VALUES {names}")
    connect = Connect(tmp_path / "connect", Config(root=tmp_path), broker.bootstrap, database, "public.customers")
    project = CdcProject(tmp_path / "project", broker.bootstrap)
    project.start()
    yield Pipe(database, connect, project)
    project.kill()
    connect.kill()


@pytest.mark.timeout(600)
def test_silver_is_the_database_table_through_restarts_of_every_part(pipe: Pipe) -> None:
    database = pipe.database
    pipe.arrives("the snapshot")
    for _ in range(ROUNDS):
        pipe.changes()
        pipe.arrives("inserts, updates and deletes")

        database.stop()
        database.start()
        pipe.changes()
        pipe.arrives("a crash of PostgreSQL")

        pipe.connect.kill()
        pipe.project.kill()
        pipe.changes()
        pipe.connect.start()
        pipe.project.start()
        pipe.changes()
        pipe.arrives("a kill of Debezium and of the driver")

    database.execute("ALTER TABLE customers ADD COLUMN loyalty int DEFAULT 3", "UPDATE customers SET loyalty = 4")
    database.execute("INSERT INTO customers VALUES (90001, 'wider', 'north', 1, 9)")
    pipe.arrives("a column more")
    database.execute(
        "ALTER TABLE customers DROP COLUMN loyalty", "INSERT INTO customers VALUES (90002, 'n', 'west', 2)"
    )
    pipe.arrives("a column less")

    database.execute("TRUNCATE customers", "INSERT INTO customers VALUES (1, 'first again', 'east', 7)")
    pipe.arrives("a truncate")
    assert not pipe.project.rows("silver.customers__dead")
