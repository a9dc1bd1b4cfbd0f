"""A Bronze table that is filled by the publish protocol, as a flow does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NAME = "bronze.input"


class BronzeTable:
    def __init__(self, config: Any, spark: Any, ddl: str, source: str) -> None:
        from lodestream.tables.lake import Lake

        self.config = config
        self.lake = Lake(spark, config.catalog.name)
        self.name = NAME
        self._source = source
        self._store = self.lake.open(NAME, ddl)
        self.restart("r1")

    def restart(self, run: str) -> None:
        from lodestream.tables.publish import Writer

        self._writer = Writer(self._store, run)
        self._writer.sweep()

    def position(self) -> Any:
        stamp = self._writer.begin().stamp
        return stamp.positions[self._source] if stamp else None

    def publish(self, rows: DataFrame, position: Any) -> None:
        from lodestream.tables.snapshot import Stamp

        base = self._writer.begin()
        number = base.stamp.batch + 1 if base.stamp else 1
        stamp = Stamp(NAME, "r1", number, {self._source: position}, base.stamp.positions if base.stamp else {}, {})
        write = lambda branch, properties: self.lake.append(NAME, rows, branch, properties)  # noqa: E731
        self._writer.publish(self._writer.stage(base, stamp, write))

    def rollback(self, steps: int) -> None:
        self._store.refresh()
        history = list(self._store.ancestors(self._store.head()))
        self._store.rollback(history[steps].id)

    def batches(self) -> int:
        self._store.refresh()
        return sum(1 for snapshot in self._store.ancestors(self._store.head()) if snapshot.stamp is not None)

    def rows(self) -> DataFrame:
        return self.lake.whole(NAME)


@pytest.fixture
def bronze(lake: Any) -> Callable[[str, str], BronzeTable]:
    return lambda ddl, source: BronzeTable(lake.config, lake.spark, ddl, source)
