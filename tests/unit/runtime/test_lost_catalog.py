"""A catalog file that is gone while its tables are there is never replaced by an empty one."""

from __future__ import annotations

from pathlib import Path

import pytest

from lodestream.config import Config
from lodestream.errors import RuntimeMissing
from lodestream.runtime.catalogs import refuse_lost_catalog, sqlite_file


def table(config: Config) -> None:
    metadata = Path(config.warehouse()) / "bronze" / "trips" / "metadata"
    metadata.mkdir(parents=True)
    (metadata / "00000-a.metadata.json").write_text("{}")


def test_tables_without_their_catalog_are_refused(tmp_path: Path) -> None:
    config = Config(root=tmp_path)
    table(config)
    with pytest.raises(RuntimeMissing, match=r"catalog\.db is missing"):
        refuse_lost_catalog(config)
    assert not sqlite_file(config).exists()


def test_a_new_project_and_a_sound_one_start(tmp_path: Path) -> None:
    config = Config(root=tmp_path)
    refuse_lost_catalog(config)
    table(config)
    sqlite_file(config).touch()
    refuse_lost_catalog(config)
