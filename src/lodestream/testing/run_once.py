"""What users need to test their own pipelines."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lodestream.config import Config, load_config
from lodestream.engine import RunEnd, open_project, run_pipeline
from lodestream.tables.inspect import Inspector
from lodestream.tables.memory import MemoryStore, MemoryTable

__all__ = ["MemoryStore", "MemoryTable", "Ran", "run_once"]

_LEFT_OUT = (".lode", "__pycache__", ".git", ".venv", ".pytest_cache")


@dataclass(frozen=True)
class Ran:
    """A pipeline that ran to its end."""

    config: Config
    end: RunEnd

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of a table; none when the table was never written."""
        view = Inspector(self.config).look(table)
        if view is None or view.head() is None:
            return []
        found: list[dict[str, Any]] = view.table.scan().to_arrow().to_pylist()
        return found


def run_once(project: Path, scratch: Path, *, profile: str | None = None) -> Ran:
    """Copy a project, bring every table of the copy up to date, and raise what stopped a table."""
    shutil.copytree(project, scratch, ignore=shutil.ignore_patterns(*_LEFT_OUT), dirs_exist_ok=True)
    config = load_config(scratch, profile=profile)
    end = run_pipeline(open_project(config), once=True)
    for flow in end.flows.values():
        if flow.error is not None:
            raise flow.error
    return Ran(config, end)
