"""A Gold table kept by its plan on real Spark: every step is the SQL that an executor runs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lodestream.pipeline.gold import GoldPlan, InputInfo, analyse, feed_view, now_view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The tables beside these tests are a module of theirs alone.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "gold_queries"))
pytest.register_assert_rewrite("gold_line", "taxi_gold_oracle", "wire")

from plan_executor import PlanExecutor  # noqa: E402

Row = tuple[Any, ...]


class Keeper(PlanExecutor):
    """Inputs as multisets of rows, and one Gold table that follows them."""

    def __init__(self, spark: SparkSession, plan: GoldPlan, infos: Mapping[str, InputInfo]) -> None:
        self.spark, self.plan = spark, plan
        self.infos = {name: infos[name] for name in plan.inputs}
        self.now: dict[str, Counter[Row]] = {name: Counter() for name in self.infos}
        self.show({})
        self.store(plan.full_sql)

    def show(self, feeds: Mapping[str, Sequence[Row]]) -> None:
        for name, info in self.infos.items():
            self.inline(now_view(name), info.columns, list(self.now[name].elements()))
            self.inline(feed_view(name), {**info.columns, "_weight": "bigint"}, feeds.get(name, ()))

    def inline(self, view: str, columns: Mapping[str, str | None], rows: Sequence[Row]) -> None:
        """Rows as literals in the plan: no Python worker has to start to read them back."""
        values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows or [(None,) * len(columns)])
        names = ", ".join(f"`{column}`" for column in columns)
        casts = ", ".join(f"cast(`{column}` AS {kind}) AS `{column}`" for column, kind in columns.items())
        kept = "" if rows else " WHERE false"
        self.view(view, f"SELECT {casts} FROM VALUES {values} AS v({names}){kept}")

    def become(self, tables: Mapping[str, Sequence[Row]]) -> None:
        """Bring the inputs to these contents in one batch: what went away weighs -1, what came +1."""
        feeds = {}
        for name in self.infos:
            new = Counter(tables[name])
            gone, came = self.now[name] - new, new - self.now[name]
            feeds[name] = [(*row, -1) for row in gone.elements()] + [(*row, 1) for row in came.elements()]
            self.now[name] = new
        self.show(feeds)
        self.publish({name for name, feed in feeds.items() if feed})

    def view(self, name: str, sql: str | None) -> None:
        self.spark.sql(sql or "").createOrReplaceTempView(name)

    def store(self, sql: str | None) -> None:
        self.spark.sql(sql or "").localCheckpoint().createOrReplaceTempView("_lode_gold")

    def gold(self) -> DataFrame:
        if self.plan.state_home == "table":
            self.view("_lode_folded", self.plan.unpack_sql)
            return self.spark.sql(self.plan.present_sql or "")
        return self.spark.table("_lode_gold").select(*self.plan.columns)

    def recompute(self, sql: str) -> DataFrame:
        """The user's own text over the inputs as they are: what a batch job would give."""
        return self.spark.sql(analyse(sql, self.infos, force="full").full_sql)

    def check(self, sql: str) -> None:
        kept, fresh = self.gold(), self.recompute(sql)
        assert [(f.name, f.dataType) for f in kept.schema] == [(f.name, f.dataType) for f in fresh.schema]
        assert Counter(map(str, kept.collect())) == Counter(map(str, fresh.collect()))


def _literal(value: Any) -> str:
    return "NULL" if value is None else "'" + str(value).replace("'", "\\'") + "'"


@pytest.fixture
def keep(spark: SparkSession) -> Callable[[str, Mapping[str, InputInfo]], Keeper]:
    def kept(sql: str, infos: Mapping[str, InputInfo]) -> Keeper:
        session = spark.newSession()  # every keeper has views of the same names
        session.conf.set("spark.sql.shuffle.partitions", "1")
        session.conf.set("spark.sql.session.timeZone", "UTC")
        return Keeper(session, analyse(sql, infos), infos)

    return kept
