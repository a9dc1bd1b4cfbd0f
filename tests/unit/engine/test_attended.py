"""What a run does beside its flows begins before them."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

from lodestream.config import load_config
from lodestream.engine.attended import Attended
from lodestream.observe import EventLog
from lodestream.planning.project import open_project
from lodestream.runtime.catalogs import sqlite_file

PIPELINE = """
from lodestream import Files, Pipeline

taxi = Pipeline("taxi")
taxi.bronze("raw", Files("data", format="json"))
taxi.silver("trips", sql="SELECT value FROM bronze.raw")
"""


class Woken:
    def __init__(self) -> None:
        self.names: list[str] = []

    def wake(self, names: Iterable[str]) -> None:
        self.names.extend(names)


def test_a_commit_right_after_the_start_wakes_its_readers(tmp_path: Path) -> None:
    (tmp_path / "lode.toml").touch()
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    project = open_project(load_config(tmp_path))
    file = sqlite_file(project.config)
    file.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(file) as catalog:
        catalog.execute("CREATE TABLE iceberg_tables (catalog_name, table_namespace, table_name, metadata_location)")
        row = (project.config.catalog.name, "bronze", "raw", "m1")
        catalog.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?)", row)
    driver, lease = Woken(), SimpleNamespace(renew=lambda give_way: None)
    events = EventLog(tmp_path / "events", "run")
    with Attended(project, project.graph, "run", [], driver, lease, events, once=False):  # type: ignore[arg-type]
        with sqlite3.connect(file) as catalog:
            catalog.execute("UPDATE iceberg_tables SET metadata_location = 'm2'")
        deadline = time.monotonic() + 4
        while not driver.names and time.monotonic() < deadline:
            time.sleep(0.02)
    events.close()
    assert driver.names == ["silver.trips"]
