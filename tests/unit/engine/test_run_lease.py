"""Who runs is known before Spark is started, from the catalog's own files."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from lodestream.config import Config
from lodestream.engine.run_lease import RunLease, refuse_early
from lodestream.errors import AlreadyRuns, CatalogUnavailable, LodeError
from lodestream.runtime.process import ProcessId
from lodestream.tables.lease import PREFIX, Holder, Renewal


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(root=tmp_path)


def written(config: Config, content: str, scheme: str = "file:") -> None:
    """A catalog whose table of leases has this metadata file."""
    config.state_dir.mkdir()
    file = config.state_dir / "00001.metadata.json"
    file.write_text(content)
    with sqlite3.connect(config.state_dir / "catalog.db") as catalog:
        catalog.execute("CREATE TABLE iceberg_tables (catalog_name, table_namespace, table_name, metadata_location)")
        catalog.execute("INSERT INTO iceberg_tables VALUES ('lode', 'lode', 'leases', ?)", (f"{scheme}{file}",))


def lease(process: ProcessId) -> str:
    now = time.time()
    holder = Holder("first", process, started=now, renewed=now)
    return json.dumps({"properties": {f"{PREFIX}silver.a": holder.to_json(), "owner": "root"}})


@pytest.mark.parametrize("scheme", ["file:", ""])
def test_a_living_run_of_this_machine_is_named(config: Config, scheme: str) -> None:
    written(config, lease(ProcessId.own()), scheme)
    with pytest.raises(AlreadyRuns, match="run first on"):
        refuse_early(config, ["gold.b", "silver.a"])
    refuse_early(config, ["gold.b"])


def test_a_dead_run_and_one_elsewhere_are_left_to_the_lease(config: Config) -> None:
    written(config, lease(replace(ProcessId.own(), began=1.0)))
    refuse_early(config, ["silver.a"])
    (config.state_dir / "00001.metadata.json").write_text(lease(replace(ProcessId.own(), machine="far")))
    refuse_early(config, ["silver.a"])


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"properties": {"lode.lease.silver.a": "of another version"}}']
)
def test_what_cannot_be_understood_stops_nobody(config: Config, content: str) -> None:
    written(config, content)
    refuse_early(config, ["silver.a"])


def test_a_project_that_has_never_run_is_free_and_left_as_it_is(config: Config) -> None:
    refuse_early(config, ["silver.a"])
    assert not config.state_dir.exists()


def test_a_start_does_not_wait_for_pyiceberg() -> None:
    look = "import sys, lodestream.engine.run; print('pyiceberg' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_take_over_that_the_catalog_delayed_is_still_one(config: Config) -> None:
    class Asked:
        """A lease whose catalog does not answer the first time."""

        def __init__(self) -> None:
            self.over: list[bool] = []

        def take(self, tables: Sequence[str], *, over: bool = False) -> None:
            self.over.append(over)
            if len(self.over) == 1:
                raise CatalogUnavailable("away")

    session = SimpleNamespace(newSession=lambda: None)
    lease = RunLease(config, session, "second", ["silver.a"])  # type: ignore[arg-type]
    lease._lease = asked = Asked()  # type: ignore[assignment]
    lease.begin(over=True)
    lease.taken()
    lease.renew(lambda lost: pytest.fail(f"{lost} is to be taken over, not given up"))
    assert asked.over == [True, True]


def test_a_table_that_was_given_up_is_freed_although_who_asked_for_it_has_died(config: Config) -> None:
    class Heard:
        """A lease that is asked for once; then who asked is gone."""

        def __init__(self) -> None:
            self.asked = {"silver.a": Holder("second", ProcessId.own(), started=0.0, renewed=0.0)}
            self.released: list[str] = []

        def renew(self) -> Renewal:
            asked, self.asked = self.asked, {}
            return Renewal(asked, {})

        def release(self, tables: Sequence[str]) -> None:
            self.released += tables

    lease = RunLease(config, SimpleNamespace(newSession=lambda: None), "first", ["silver.a"])  # type: ignore[arg-type]
    lease._lease = heard = Heard()  # type: ignore[assignment]
    told: list[str] = []

    def give_way(lost: Mapping[str, LodeError]) -> list[str]:
        told.extend(lost)
        return ["silver.a"] if len(told) == 3 else []  # its batch takes three renewals

    for _ in range(5):
        lease.renew(give_way)
    assert told == ["silver.a"] * 3
    assert heard.released == ["silver.a"]
