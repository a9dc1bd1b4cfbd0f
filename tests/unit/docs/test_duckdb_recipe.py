"""The recipe of docs/duckdb.md, on a table that no JVM has written and with downloads turned off."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

RECIPE = Path(__file__).parents[3] / "docs" / "duckdb.md"


def test_duckdb_reads_the_tables_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".lode").mkdir()
    catalog = load_catalog(
        "lode", type="sql", uri=f"sqlite:///{tmp_path}/.lode/catalog.db", warehouse=f"file://{tmp_path}"
    )
    catalog.create_namespace("gold")
    rows = pa.table({"region": ["north", "south"], "revenue": [1, 2]})
    catalog.create_table("gold.daily_revenue", rows.schema).append(rows)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))  # no extension that this machine has downloaded before
    found = re.search(r"```python file=\S+\n(.*?)```", RECIPE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    recipe: dict[str, Any] = {"__name__": "recipe"}
    exec(compile(found[1], str(RECIPE), "exec"), recipe)
    query = f"select region, revenue from {recipe['table']('gold.daily_revenue')} order by region"
    assert recipe["connect"]().sql(query).fetchall() == [("north", 1), ("south", 2)]
