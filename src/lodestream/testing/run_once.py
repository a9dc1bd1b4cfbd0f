"""A project, run on its own data in a scratch copy."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lodestream.config import Config, load_config
from lodestream.engine import RunEnd, run_pipeline
from lodestream.planning.project import Project, open_project
from lodestream.testing.reading import read_letters, read_rows

_LEFT_OUT = (".lode", "__pycache__", ".git", ".venv", ".pytest_cache")
# The second compiler of the JVM pays off after the first minute: a test is over by then.
_QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}


@dataclass(frozen=True)
class Ran:
    """A pipeline that ran to its end."""

    project: Project
    end: RunEnd

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of a table, in no order; `NotMade` when there is no such table."""
        return read_rows(self.project.config, self.project.graph, table)

    def dead(self, table: str) -> list[dict[str, Any]]:
        """The open dead letters of a table."""
        return read_letters(self.project.config, self.project.graph, table)


def run_once(project: Path, scratch: Path, *, profile: str | None = None) -> Ran:
    """Copy a project, bring every table of the copy up to date, and raise what stopped a table."""
    opened = open_project(quick(copied(project, scratch, profile)))
    end = run_pipeline(opened, once=True)
    for flow in end.flows.values():
        if flow.error is not None:
            raise flow.error
    return Ran(opened, end)


def copied(project: Path, scratch: Path, profile: str | None) -> Config:
    """Everything but its tables: a test must not read or write those."""
    shutil.copytree(project, scratch, ignore=shutil.ignore_patterns(*_LEFT_OUT), dirs_exist_ok=True)
    return load_config(scratch, profile=profile)


def quick(config: Config) -> Config:
    return replace(config, spark=replace(config.spark, conf={**_QUICK, **config.spark.conf}))
