"""Silver tables that a test sets to any content, and Gold flows over them: the real protocol on real Iceberg."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lodestream.flows.assemblies.gold import KeptGold, gold_table
from lodestream.flows.flow import Published
from lodestream.flows.gold.table import GoldInput
from lodestream.pipeline import Pipeline, Table
from lodestream.pipeline.gold import InputInfo, analyse, now_view
from lodestream.sources.table import AppendedRows, TableInput, WholeTable
from lodestream.tables.lake import Lake
from lodestream.tables.publish import Writer
from lodestream.tables.snapshot import Stamp

Row = tuple[Any, ...]
Keys = Mapping[str, tuple[str, ...]]
_runs = itertools.count(1)


class Silver:
    """One table of the tier below, published batch by batch."""

    def __init__(self, lake: Lake, info: InputInfo) -> None:
        self.lake, self.info, self.name = lake, info, info.name
        store = lake.open(self.name, ", ".join(f"`{column}` {kind}" for column, kind in info.columns.items()))
        self._writer = Writer(store, f"silver{next(_runs)}")
        self._batches = itertools.count(1)

    def become(self, rows: Sequence[Row]) -> None:
        self._publish(partial(self.lake.overwrite, self.name, self.frame(rows)))

    def append(self, rows: Sequence[Row]) -> None:
        self._publish(partial(self.lake.append, self.name, self.frame(rows)))

    def frame(self, rows: Sequence[Row]) -> DataFrame:
        """Rows as literals in the plan: no Python worker has to start to read them back."""
        columns = self.info.columns
        values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows or [(None,) * len(columns)])
        names = ", ".join(f"`{column}`" for column in columns)
        casts = ", ".join(f"cast(`{column}` AS {kind}) AS `{column}`" for column, kind in columns.items())
        found = self.lake.spark.sql(f"SELECT {casts} FROM VALUES {values} AS v({names})")
        return found if rows else found.limit(0)

    def _publish(self, write: Any) -> None:
        number = next(self._batches)
        stamp = Stamp(self.name, self._writer.branch, number, {"test": number}, None)
        self._writer.publish(self._writer.stage(self._writer.begin(), stamp, write))


class Gold:
    """One Gold table and its flow; `restart` is what a new process would do."""

    def __init__(
        self, spark: SparkSession, catalog: str, table: Table, inputs: Mapping[str, bool], **given: Any
    ) -> None:
        self._make = partial(self._flow, spark, catalog, table, inputs, given)
        self.table = table
        self.restart()

    def restart(self) -> None:
        self.kept = self._make()
        self.flow, self.gold = self.kept.flow, self.kept.table

    def step(self) -> Published | None:
        return self.flow.step(10_000)

    @property
    def rows(self) -> DataFrame:
        return self.flow.lake.whole(self.table.name)

    def fresh(self) -> DataFrame:
        """The user's own text over the inputs as they are: what a batch job would give."""
        infos = [InputInfo(one.table.name, {"x": None}) for one in self.gold.inputs]
        for one in self.gold.inputs:
            one.table.now(one.table.latest() or {}).createOrReplaceTempView(now_view(one.table.name))
        return self.flow.lake.spark.sql(analyse(self.table.sql or "", infos, force="full").full_sql)

    def check(self) -> None:
        kept, fresh = self.rows, self.fresh()
        assert [(f.name, f.dataType) for f in kept.schema] == [(f.name, f.dataType) for f in fresh.schema]
        assert Counter(map(str, kept.collect())) == Counter(map(str, fresh.collect())), self.table.name

    @staticmethod
    def _flow(spark: SparkSession, catalog: str, table: Table, inputs: Keys, given: Mapping[str, Any]) -> KeptGold:
        session = spark.newSession()
        session.conf.set("spark.sql.session.timeZone", "UTC")
        lake = Lake(session, catalog)
        options = dict(given)
        appended, lookups = options.pop("appended", ()), options.pop("lookups", ())
        small = options.pop("small", None)

        def source(name: str) -> TableInput:
            return AppendedRows(lake, name) if name in appended else WholeTable(lake, name)

        read = [GoldInput(source(name), name in lookups, keys) for name, keys in inputs.items()]
        kept = gold_table(lake, table, f"gold{next(_runs)}", read, **options)
        if small is not None:
            kept.table.small = small
        return kept


def declared(name: str, sql: str | None = None, function: Any = None, **options: Any) -> Table:
    pipeline = Pipeline("line")
    if sql is not None:
        return pipeline.gold(name, sql=sql, **options)
    pipeline.gold(name, **options)(function)
    return pipeline.tables[f"gold.{name}"]


def literal(value: Any) -> str:
    return "NULL" if value is None else "'" + str(value).replace("'", "\\'") + "'"
