"""What is recorded with rows is the code that a process has loaded, not what its files say meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lodestream.config import load_config
from lodestream.pipeline.definition import code_of, definition_parts
from lodestream.pipeline.gold.plan import InputInfo
from lodestream.planning.project import Project, open_project

PIPELINE = """\
from lodestream import Kafka, Pipeline
import loaded_rates

taxi = Pipeline("taxi")
taxi.bronze("raw", Kafka("t"))


@taxi.silver()
def trips(raw):
    return raw.limit(loaded_rates.FACTOR)


@taxi.gold(keys="id")
def priced(trips):
    return trips.limit(loaded_rates.FACTOR)


taxi.gold("daily", sql="daily.sql")
"""
QUERY = "SELECT id, count(*) AS n FROM silver.trips GROUP BY id"


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "lode.toml").touch()
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    (tmp_path / "loaded_rates.py").write_text("FACTOR = 2\n")
    (tmp_path / "daily.sql").write_text(QUERY)
    yield tmp_path
    sys.modules.pop("loaded_rates", None)


def recorded(project: Project) -> tuple[object, ...]:
    """What a flow writes beside its rows, whenever it is made."""
    trips = [InputInfo("silver.trips", {"id": "int"})]
    gold = [definition_parts(project.graph[name], trips) for name in ("gold.priced", "gold.daily")]
    return code_of(project.graph["silver.trips"]), *gold


def edit(root: Path) -> None:
    (root / "loaded_rates.py").write_text("FACTOR = 3  # edited\n")
    (root / "daily.sql").write_text(QUERY.replace("n FROM", "many FROM"))


def test_files_edited_under_a_run_change_nothing_that_it_records(root: Path) -> None:
    project = open_project(load_config(root))
    before = recorded(project)
    edit(root)
    assert recorded(project) == before


def test_files_edited_before_the_first_batch_are_not_taken_for_the_code_that_was_loaded(root: Path) -> None:
    project = open_project(load_config(root))
    edit(root)
    late = recorded(project)
    sys.modules.pop("loaded_rates")
    assert all(one != other for one, other in zip(late, recorded(open_project(load_config(root))), strict=True))
