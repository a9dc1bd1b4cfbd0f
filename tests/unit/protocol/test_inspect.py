# ruff: noqa: E501 - a statement reads best in one piece
"""The catalog looked at by Python while Java makes it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from lodestream.config import load_config
from lodestream.runtime.catalogs import sqlite_file
from lodestream.tables.inspect import Inspector

TABLE = "CREATE TABLE iceberg_tables (catalog_name TEXT, table_namespace TEXT, table_name TEXT, metadata_location TEXT, previous_metadata_location TEXT)"


@pytest.mark.parametrize("made", [(), (TABLE,)], ids=["empty", "without its last column"])
def test_a_catalog_that_is_being_made_holds_no_table_yet(tmp_path: Path, made: tuple[str, ...]) -> None:
    config = load_config(tmp_path)
    file = sqlite_file(config)
    file.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(file) as catalog:
        for statement in made:
            catalog.execute(statement)
    assert Inspector(config).look("gold.daily") is None
