"""The sink of docs/extending.md, as it stands there, on real tables: exactly once over random kills."""

from __future__ import annotations

import random
import re
import sqlite3
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from served import Served

from lodestream import failpoints
from lodestream.serving import Outlet, Sink

PAGE = Path(__file__).parents[3] / "docs" / "extending.md"
POINTS = ("sink.before", "sink.inside", "sink.delivered")


class Killed(BaseException):
    """The process is gone; nothing may catch it."""


def die() -> None:
    raise Killed


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The code of the page as a module."""
    text = PAGE.read_text(encoding="utf-8").partition("## A sink of your own")[2]
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    assert len(found[1].splitlines()) <= 40
    module = ModuleType("page_sink")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(found[1], str(PAGE), "exec"), module.__dict__)
    return module


class Torn(Sink):
    """The same sink in a process that may die between two rows."""

    def __init__(self, inner: Any, table: str) -> None:
        super().__init__(name="copy", gap="refresh", batch_rows=3)
        object.__setattr__(self, "inner", inner)

    def open(self, table: str) -> Outlet:
        outlet: Any = self.inner.open(table)
        taken = outlet.deliver

        def deliver(delivery: Any) -> None:
            rows = (failpoints.reach("sink.inside", table) or one for one in delivery.changes)
            taken(type(delivery)(delivery.table, rows, delivery.position, delivery.after, delivery.whole))

        outlet.deliver = deliver
        return outlet


@pytest.mark.parametrize("seed", range(6))
def test_the_copy_has_every_row_once_whenever_the_process_is_killed(
    served: Served, page: ModuleType, seed: int
) -> None:
    rng = random.Random(seed)
    file = str(served.folder / "copy.db")
    people: dict[int, str] = {}
    for _ in range(6):
        _change(served, people, rng)
        if rng.random() < 0.2 and served.catalog.table_exists("lode.sinks"):
            served.catalog.drop_table("lode.sinks")
        failpoints.arm(rng.choice(POINTS), "silver.people", die, nth=rng.randint(1, 4))
        sink = Torn(page.SqliteCopy(file), "silver.people")
        try:
            served.deliverer("silver.people", sink, feed="silver.people__changes").catch_up()
        except Killed:
            pass
        finally:
            failpoints.disarm()
        assert all(n == 1 for n in _copied(file).values()), f"seed {seed}: a row came twice"
    served.deliverer("silver.people", Torn(page.SqliteCopy(file), ""), feed="silver.people__changes").catch_up()
    assert _copied(file) == served.rows("silver.people"), f"seed {seed}"


def test_a_copy_whose_history_is_gone_is_made_anew_in_one_step(served: Served, page: ModuleType) -> None:
    file = str(served.folder / "copy.db")
    sink = page.SqliteCopy(file, gap="refresh")
    first = served.events(0, 2)
    served.deliverer("bronze.events", sink).catch_up()
    served.events(2, 2)
    served.deliverer("bronze.events", sink).catch_up()
    served.table("bronze.events").manage_snapshots().rollback_to_snapshot(first).commit()
    served.deliverer("bronze.events", sink).catch_up()
    assert _copied(file) == served.rows("bronze.events")
    assert sum(_copied(file).values()) == 2


def _change(served: Served, people: dict[int, str], rng: random.Random) -> None:
    """A batch of updates, inserts and deletes by key."""
    changes: list[tuple[int, int, str]] = []
    for key in rng.sample(range(12), rng.randint(1, 6)):
        if key in people:
            changes.append((-1, key, people.pop(key)))
        if rng.random() < 0.7:
            people[key] = f"{key}-{rng.randrange(1000)}"
            changes.append((1, key, people[key]))
    served.change_people(changes or [(0, 99, "mark")], sorted(people.items()))


def _copied(file: str) -> Counter[str]:
    with sqlite3.connect(file) as copy:
        found = copy.execute("SELECT name FROM sqlite_master WHERE name = 'rows'").fetchone()
        return Counter(row for (row,) in copy.execute("SELECT row FROM rows")) if found else Counter()
