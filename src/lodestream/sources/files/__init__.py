"""Files in a folder or bucket: each is read once, and its rows are located by file and row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lodestream.config import Config
from lodestream.sources.files.declaration import Files
from lodestream.sources.kinds import Backlog, GivenEvent, Opening, register_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lodestream.sources.source import Source

__all__ = ["Files"]


def _open(declared: Files, opening: Opening) -> Source:
    from lodestream.sources.files.reading import open_files

    return open_files(declared, opening)


def _backlog(declared: Files, _config: Config) -> Backlog | None:
    from lodestream.sources.files.lag import backlog

    return backlog(declared)


def _stand_in(declared: Files, spark: SparkSession, events: Sequence[tuple[int, GivenEvent]]) -> DataFrame:
    from lodestream.sources.files.stand_in import given_lines

    return given_lines(declared, spark, events)


register_source(Files, open=_open, backlog=_backlog, stand_in=_stand_in)
