"""`lode init` gives a project that runs and passes its own tests at once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def project(lode):
    assert lode("init", "Läden und Söhne").code == 0
    return lode.folder / "Läden und Söhne"


def test_it_runs_at_once(lode, project):
    ended = lode("--project", project, "run", "--once", "--json")
    assert ended.code == 0, ended.err
    assert {name: flow["state"] for name, flow in ended.json["flows"].items()} == {
        "bronze.orders_raw": "done",
        "silver.orders": "done",
        "gold.daily_revenue": "done",
    }
    tables = {table["name"]: table for table in lode("--project", project, "status", "--json").json["tables"]}
    assert tables["bronze.orders_raw"]["rows"] == 7
    assert tables["silver.orders"]["rows"] == 5
    assert tables["silver.orders"]["dead"] == 1


def test_it_passes_its_own_tests(project):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=project,
        env={**os.environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
