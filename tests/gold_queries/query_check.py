"""One query, one history: the maintained table against the query itself, batch by batch, on DuckDB."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from itertools import count
from math import isclose
from pathlib import Path
from typing import Any

import duckdb
from query_dialect import MACROS, Untranslatable, duck
from query_generator import Generator
from query_model import Query
from query_tables import INFOS, NO_LOOKUP, History, Row, history

sys.path.insert(0, str(Path(__file__).parents[1] / "spark" / "gold"))

from plan_executor import PlanExecutor

from lodestream.errors import DeclarationError
from lodestream.names import STATE_COLUMN
from lodestream.pipeline.gold import GoldPlan, InputInfo, Strategy, analyse, feed_view, now_view

POOL = 60  # histories that the cases of one run share
_MOMENTS, _MOST_BATCHES = count(), 100
Planner = Callable[..., GoldPlan]
_DUCK_TYPES = {"string": "varchar", "timestamp_ntz": "timestamp"}


@dataclass(frozen=True)
class Case:
    """`large` keeps the table as flows keep one that is too large to be written as a whole."""

    seed: str
    sql: str
    truth: str
    history: History
    query: Query | None = None
    infos: Mapping[str, InputInfo] = field(default_factory=lambda: INFOS)
    force: Strategy | None = None
    large: bool = False
    pooled: int | None = None


@dataclass(frozen=True)
class Outcome:
    """`status` is "same", "skipped" (DuckDB cannot say), or what went wrong."""

    status: str
    strategy: str = ""
    detail: str = ""
    batch: int = 0

    @property
    def fault(self) -> bool:
        return self.status not in ("same", "skipped")


def case_of(seed: int, number: int) -> Case:
    """The same seed and number give the same case, on every machine."""
    chance = random.Random(f"{seed}:{number}")
    query = Generator(chance).query()
    pooled = chance.randrange(POOL)
    infos = INFOS if chance.random() < 0.7 else NO_LOOKUP
    force: Strategy | None = "affected" if chance.random() < 0.1 else None
    large = chance.random() < 0.3
    text = query.sql
    return Case(f"{seed}:{number}", text, query.text(duck=True), pool(seed, pooled), query, infos, force, large, pooled)


def cases_of(sql: str, histories: int) -> list[Case]:
    """One given query with several histories; in some by affected keys, in some large, in some with a lookup."""
    return [
        Case(
            f"1:{number}",
            sql,
            duck(sql),
            pool(1, number),
            infos=NO_LOOKUP if number % 4 == 1 else INFOS,
            force="affected" if number % 3 == 2 else None,
            large=number % 2 == 1,
            pooled=number,
        )
        for number in range(histories)
    ]


def cases_with(sql: str, given: History) -> list[Case]:
    """One given query with one given history, kept in every way."""
    first = Case("scenario", sql, duck(sql), given)
    ways = [{}, {"force": "affected"}, {"large": True}, {"infos": NO_LOOKUP}, {"infos": NO_LOOKUP, "force": "affected"}]
    return [replace(first, **way) for way in ways]


@cache
def pool(seed: int, number: int) -> History:
    return history(random.Random(f"{seed}/{number}"), batches=3 + (number % 4 == 0))


@cache
def database() -> duckdb.DuckDBPyConnection:
    """One database for all cases. Its views show the history and the batch of the moment that a variable names."""
    db = duckdb.connect(config={"threads": 1})
    db.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
    db.execute("PRAGMA disable_optimizer")  # ten rows need no plan
    db.execute("CREATE SCHEMA silver")
    for name, info in INFOS.items():
        short = name.partition(".")[2]
        columns = ", ".join(f"{column} {_DUCK_TYPES.get(str(kind), kind)}" for column, kind in info.columns.items())
        shown = ", ".join(info.columns)
        here = "WHERE _moment = getvariable('moment')"
        db.execute(f"CREATE TABLE all_{short} (_moment int, {columns})")
        db.execute(f"CREATE TABLE fed_{short} (_moment int, {columns}, _weight int)")
        for view in (name, now_view(name)):
            db.execute(f"CREATE VIEW {view} AS SELECT {shown} FROM all_{short} {here}")
        db.execute(f"CREATE VIEW {feed_view(name)} AS SELECT {shown}, _weight FROM fed_{short} {here}")
    for macro in MACROS:
        db.execute(macro)
    return db


@cache
def _load_pooled(seed: str, number: int) -> int:
    return _load(pool(int(seed), number))


def _load(given: History) -> int:
    """The first moment of a history; each batch is one later."""
    db, first = database(), next(_MOMENTS) * _MOST_BATCHES
    for table in INFOS:
        short, batches = table.partition(".")[2], range(len(given.states))
        _insert(db, f"all_{short}", [(first + b, *row) for b in batches for row in given.states[b].get(table, ())])
        _insert(db, f"fed_{short}", [(first + b, *row, w) for b in batches for row, w in given.feed(b, table)])
    return first


def _insert(db: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Row]) -> None:
    if rows:
        values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
        db.execute(f"INSERT INTO {table} VALUES {values}")


def _literal(value: Any) -> str:
    return "NULL" if value is None else "'" + str(value).replace("'", "''") + "'"


class Kept(PlanExecutor):
    """One Gold table in DuckDB, kept by its plan."""

    def __init__(self, plan: GoldPlan, large: bool) -> None:
        self.plan, self.large, self.db = plan, large, database()
        self._views: dict[str, str | None] = {}

    def view(self, name: str, sql: str | None) -> None:
        if name == "_lode_keys":  # asked for several times; the flows keep them as well
            self.db.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {duck(sql or '')}")
        elif self._views.get(name) != sql:  # a view of a view stays right when what it reads is replaced
            self.db.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {duck(sql or '')}")
            self._views[name] = sql

    def store(self, sql: str | None) -> None:
        self.db.execute(f"CREATE OR REPLACE TEMP TABLE _lode_gold AS {duck(sql or '')}")

    def rows(self) -> list[dict[str, Any]]:
        if self.plan.state_home == "table":
            self.view("_lode_shown", self.plan.unpack_sql)
            shown = (self.plan.present_sql or "").replace("_lode_folded", "_lode_shown")
            return ask(duck(shown))
        return [{name: value for name, value in row.items() if name != STATE_COLUMN} for row in ask("FROM _lode_gold")]


def ask(text: str) -> list[dict[str, Any]]:
    cursor = database().execute(text)
    names = [str(column[0]).lower() for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def check(case: Case, planner: Planner = analyse) -> Outcome:
    """Follow the inputs of a case by its plan and compare after every batch."""
    start = _place(case)
    try:
        try:
            first = _true_rows(case, start)
        except duckdb.Error as error:
            return Outcome("skipped", detail=_first(error))
        try:
            plan = planner(case.sql, case.infos, force=case.force)
        except DeclarationError as error:
            return _check_refused(case, planner, error)
        except Exception as error:
            return Outcome("crashed", detail=f"{type(error).__name__}: {_first(error)}")
        return _follow(case, plan, start, first)
    finally:
        _forget(case, start)


def _check_refused(case: Case, planner: Planner, error: DeclarationError) -> Outcome:
    """A strategy that was asked for may be refused; a valid query may not."""
    if case.force is None:
        return Outcome("refused", detail=str(error).replace("\n", " "))
    return check(replace(case, force=None), planner)


def _follow(case: Case, plan: GoldPlan, start: int, first: list[dict[str, Any]]) -> Outcome:
    kept = Kept(plan, case.large)
    # A full refresh forgets what was, so its second batch shows all there is to see.
    batches = len(case.history.states) if plan.strategy != "full" else min(2, len(case.history.states))
    for batch in range(batches):
        try:
            truth = first if batch == 0 else _true_rows(case, start + batch)
            if batch == 0:
                kept.store(plan.full_sql)
            else:
                kept.publish({table for table in plan.inputs if case.history.feed(batch, table)})
            found = kept.rows()
        except Untranslatable as error:
            unfit = "Spark" in str(error) or "parenthesis" in str(error)
            return Outcome("broken" if unfit else "skipped", plan.strategy, str(error), batch)
        except (duckdb.Error, LookupError) as error:
            return Outcome("broken", plan.strategy, _first(error), batch)
        if not same(found, truth):
            return Outcome("different", plan.strategy, f"kept {found}\n    true {truth}", batch)
    return Outcome("same", plan.strategy)


def _true_rows(case: Case, moment: int) -> list[dict[str, Any]]:
    database().execute(f"SET VARIABLE moment = {moment}")
    return ask(case.truth)


def _place(case: Case) -> int:
    if case.pooled is not None:
        return _load_pooled(case.seed.partition(":")[0], case.pooled)
    return _load(case.history)


def _forget(case: Case, start: int) -> None:
    if case.pooled is None:
        for table in INFOS:
            short = table.partition(".")[2]
            for each in (f"all_{short}", f"fed_{short}"):
                database().execute(f"DELETE FROM {each} WHERE _moment >= {start}")


def _first(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__


def same(left: Sequence[Mapping[str, Any]], right: Sequence[Mapping[str, Any]]) -> bool:
    """The same rows, each as often; numbers that are not exact in DuckDB (avg of decimals) nearly."""
    if len(left) != len(right):
        return False
    if left and left[0].keys() != right[0].keys():
        return False
    one, other = Counter(map(_canonical, left)), Counter(map(_canonical, right))
    if one == other:
        return True
    rest = list((other - one).elements())
    for row in (one - other).elements():
        near = next((place for place, candidate in enumerate(rest) if _near(row, candidate)), None)
        if near is None:
            return False
        rest.pop(near)
    return not rest


def _canonical(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple((_type(row[name]), _value(row[name])) for name in sorted(row))


def _type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float, Decimal)):
        return "number"
    return "moment" if isinstance(value, datetime) else "date" if isinstance(value, date) else type(value).__name__


def _value(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    return str(value) if isinstance(value, (list, dict)) else value


def _near(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(_near_value(a, b) for a, b in zip(one, other, strict=True))


def _near_value(one: tuple[str, Any], other: tuple[str, Any]) -> bool:
    if one == other:
        return True
    inexact = isinstance(one[1], float) or isinstance(other[1], float)
    if one[0] != "number" or other[0] != "number" or not inexact:
        return False
    return isclose(float(one[1]), float(other[1]), abs_tol=2e-5, rel_tol=1e-7)
