"""Edits of SQL and Python under a run are told, once, with what to do about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lodestream.config import load_config
from lodestream.engine.definitions import DefinitionWatch, changed_since_start
from lodestream.observe import EventLog, events_folder, read_events
from lodestream.planning.project import open_project
from lodestream.starter import write_project

SQL = "gold/daily_revenue.sql"


class Watched:
    def __init__(self, root: Path) -> None:
        self.root = root
        config = load_config(root)
        self.watch = DefinitionWatch(open_project(config))
        self.log = EventLog(events_folder(config.state_dir), "run1")

    def look(self) -> list[tuple[str, str | None, str]]:
        before = len(self._events())
        self.watch.look(self.log)
        return [(event.name, event.table, event.facts()["file"]) for event in self._events()[before:]]

    def changed(self) -> dict[str, tuple[str, ...]]:
        return changed_since_start(self._events())

    def _events(self):
        return list(read_events(self.root / ".lode"))


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    write_project(tmp_path / "shop")
    return Watched(tmp_path / "shop")


def edit(file: Path, text: str) -> None:
    """As editors do it: written aside, then put in place."""
    aside = file.with_suffix(".swp")
    aside.write_text(text)
    aside.replace(file)


def test_an_edited_query_is_told_once_with_its_table(watched: Watched) -> None:
    assert watched.look() == []
    file = watched.root / SQL
    before = file.read_text()
    edit(file, before + "\n-- edited")
    assert watched.look() == [("definition.changed", "gold.daily_revenue", SQL)]
    edit(file, before + "\n-- edited again")
    assert watched.look() == []
    assert watched.changed() == {"gold.daily_revenue": (SQL,)}
    edit(file, before)
    assert watched.look() == [("definition.restored", "gold.daily_revenue", SQL)]
    assert watched.changed() == {}


def test_touching_a_file_changes_nothing(watched: Watched) -> None:
    edit(watched.root / SQL, (watched.root / SQL).read_text())
    assert watched.look() == []


def test_edited_python_is_about_every_table(watched: Watched) -> None:
    edit(watched.root / "pipeline.py", (watched.root / "pipeline.py").read_text() + "\n")
    assert watched.look() == [("definition.changed", None, "pipeline.py")]
    assert set(watched.changed()) == {"bronze.orders_raw", "silver.orders", "gold.daily_revenue"}


def test_a_contract_of_silver_is_applied_live_and_not_told(watched: Watched) -> None:
    file = watched.root / "contracts" / "order.yaml"
    edit(file, file.read_text() + "\n")
    assert watched.look() == []


def test_an_editor_that_is_replacing_the_file_is_waited_for(watched: Watched) -> None:
    file = watched.root / SQL
    text = file.read_text()
    file.unlink()
    assert watched.look() == []
    file.write_text(text)
    assert watched.look() == []
