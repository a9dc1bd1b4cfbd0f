"""Declared code over its inputs: what its function or query makes of them, and what may be counted."""

from __future__ import annotations

import traceback
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, struct
from sqlglot import exp

from lodestream.contracts import Contract, Field
from lodestream.contracts.quoting import name as quoted
from lodestream.errors import UserCodeError
from lodestream.flows.batch import Span
from lodestream.flows.code.plan_steps import multiplies, refuse_distinct
from lodestream.names import CARRIED, ERROR, EVENT, RESERVED, reserved
from lodestream.pipeline import Table
from lodestream.pipeline.gold.edits import Edit, edited, reading, table_span
from lodestream.pipeline.gold.parsing import UnreadableError, parse, span
from lodestream.pipeline.gold.pieces import quoted as quoted_in_query
from lodestream.pipeline.gold.statement import mentions
from lodestream.pipeline.gold.tables import base_tables, table_name
from lodestream.sources.codecs.frame import Decoder
from lodestream.sources.kinds import arrival_in
from lodestream.sources.source import Source
from lodestream.tables.evolving import spelt
from lodestream.tables.hidden import shown
from lodestream.tables.lake import Lake


@dataclass(frozen=True)
class DeclaredInputs:
    """What a table reads: `names` in declared order. News of `lookups` start no batch, unless they are `corrected`."""

    sources: tuple[Source, ...]
    names: tuple[str, ...]
    lookups: frozenset[str] = frozenset()
    corrected: frozenset[str] = frozenset()

    @property
    def starting(self) -> frozenset[str]:
        """Those whose news start a batch."""
        lookups = self.lookups - self.corrected
        return frozenset(source.name for source in self.sources if source.name not in lookups)

    @cached_property
    def driving(self) -> str:
        return next(name for name in self.names if name not in self.lookups)

    @property
    def followed(self) -> list[Source]:
        return [one for one in self.sources if one.name not in self.lookups]

    def read(self, span: Span) -> dict[str, DataFrame]:
        return {source.name: source.read(span.since[source.name], span.to[source.name]) for source in self.sources}


@dataclass(frozen=True)
class DeclaredRows:
    """The rows that declared code makes, under one contract.

    `carries` is whether the raw row rides along in a column, so that a refused row can be kept. A table that follows a
    keyed one keeps what was made instead (`keeps_result`): its function need not carry anything.
    """

    lake: Lake
    table: Table
    inputs: DeclaredInputs
    decode: Decoder | None
    carries: bool
    keeps_result: bool = False
    told: Callable[[Sequence[str]], None] = lambda _columns: None

    @property
    def driving(self) -> str:
        return self.inputs.driving

    @property
    def accounts(self) -> bool:
        """Whether each row of the input must come out again: not where two inputs meet, or where changes are netted."""
        followed = self.inputs.followed
        return self.decode is not None or (len(followed) == 1 and followed[0].appends)

    @cached_property
    def multiplies(self) -> bool:
        """Whether the declared code may make several rows of one."""
        rows = self.over_nothing()
        if self.carries:
            refuse_distinct(self.table.name, rows)
        return multiplies(rows)

    @cached_property
    def arrival(self) -> str | None:
        """When an event came: when it reached the broker, or when its file was written."""
        if self.decode is None:
            return None
        column = arrival_in(self.lake.whole(self.driving).columns)
        return f"{CARRIED}.{column}" if column else None

    def made(self, frames: Mapping[str, DataFrame]) -> DataFrame:
        """What the code makes of these inputs; the driving one as `carried` gives it."""
        ordered = {name: frames[name] for name in self.inputs.names}
        required = (self.driving, CARRIED) if self.carries and not self.keeps_result else None
        rows = transform(self.lake.spark, self.table, ordered, required)
        if self.keeps_result and CARRIED not in rows.columns:
            rows = rows.withColumn(CARRIED, struct(*map(quoted, rows.columns)))
        self.told(rows.columns)
        return rows

    def carried(self, rows: DataFrame) -> DataFrame:
        """The driving input as the function sees it: decoded if declared, the raw row beside it."""
        if self.decode is not None:
            return self.decode(rows).drop(ERROR)
        if self.carries:
            return rows.withColumn(CARRIED, struct(*[col(f"`{name}`") for name in rows.columns])).drop(EVENT)
        return rows

    def shape(self) -> DataFrame:
        """The declared rows over empty inputs: only their columns count."""
        return self.made(self._empty())

    def over_nothing(self) -> DataFrame:
        """The declared rows over inputs that have columns and nothing else: their plan is that of the code alone."""
        shapes = self._empty()
        return self.made({name: self.lake.spark.createDataFrame([], one.schema) for name, one in shapes.items()})

    def as_contract(self) -> Contract:
        """Without a contract, the columns are those that the function gives."""
        fields = [one for one in self.shape().schema if one.name != CARRIED]
        return Contract(self.table.short, "0", tuple(Field(one.name, spelt(one.dataType)) for one in fields))

    def _empty(self) -> dict[str, DataFrame]:
        frames = {name: shown(self.lake.whole(name)).limit(0) for name in self.inputs.names}
        frames[self.driving] = self.carried(frames[self.driving])
        return frames


def transform(
    spark: SparkSession, table: Table, frames: Mapping[str, DataFrame], carried: tuple[str, str] | None = None
) -> DataFrame:
    """The declared rows over the given inputs, keyed by the inputs' full names in declared order.

    `carried` names an input and the column of it that must come out again beside each row.
    """
    if table.sql is not None:
        return _kept(table, run_query(spark, table, table.sql, frames, carried), carried)
    if table.function is None:
        raise UserCodeError(f"{table.name} declares neither a function nor a query")
    try:
        result = table.function(*frames.values())
    except Exception as error:
        raise UserCodeError(
            f"{_own_traceback(error)}\n{table.name}: {type(error).__name__} in {_where(table)}",
            why="the declared function raised before Spark read a row",
            fix="correct the function; nothing of the batch was published",
        ) from error
    if not isinstance(result, DataFrame):
        raise UserCodeError(
            f"{table.name}: {_where(table)} returned {type(result).__name__}, not a DataFrame",
            fix="return the DataFrame at the end of the function",
        )
    refuse_own_names(table, result)
    return _kept(table, result, carried)


def refuse_own_names(table: Table, rows: DataFrame) -> None:
    """What a query names is checked when it is planned; what a star or a function gives is known now."""
    ours = [name for name in rows.columns if reserved(name)] if table.tier == "gold" else []
    if ours:
        raise UserCodeError(
            f"{table.name}: {_where(table)} returns a column {', '.join(ours)}",
            why=RESERVED,
            fix="give it another name",
        )


def _kept(table: Table, rows: DataFrame, carried: tuple[str, str] | None) -> DataFrame:
    if carried is not None and carried[1] not in rows.columns:
        raise UserCodeError(
            f"{table.name}: {_where(table)} drops the column {carried[1]}",
            why="it holds the raw row: without it no row that is refused could be kept, counted and replayed",
            fix=f'select it too, as in select("id", "{carried[1]}"), or begin with select("*", ...)',
        )
    return rows


def _own_traceback(error: Exception) -> str:
    """From the user's function on: the frames that led there are ours."""
    frames = error.__traceback__.tb_next if error.__traceback__ else None
    return "".join(traceback.format_exception(type(error), error, frames)).strip()


def run_query(
    spark: SparkSession,
    table: Table,
    sql: str,
    frames: Mapping[str, DataFrame],
    carried: tuple[str, str] | None = None,
) -> DataFrame:
    """The query with each input's name standing for the given rows instead of the stored table."""
    views = {name: f"lode_{uuid.uuid4().hex}" for name in frames}
    for name, frame in frames.items():
        frame.createOrReplaceTempView(views[name])
    try:
        # Over the query as it was analysed: Spark analyses a bare one again when it is written, without our views.
        return spark.sql(_over_views(sql, views, carried)).select("*")
    except AnalysisException as error:
        raise UserCodeError(
            f"{table.name}: the query does not fit its inputs ({_where(table)})",
            why=str(error).strip().splitlines()[0],
            fix="correct the query; nothing of the batch was published",
        ) from error
    finally:
        for view in views.values():
            spark.catalog.dropTempView(view)


def _over_views(sql: str, views: Mapping[str, str], carried: tuple[str, str] | None) -> str:
    """The user's own text, character by character, with each input's name replaced by a view.

    `carried` is put beside what is selected, wherever a SELECT reads that input directly.
    """
    known = {name.lower(): view for name, view in views.items()}
    try:
        tree = parse(sql).trees[0]
    except UnreadableError:  # only Spark can read it: its tables are found by their names
        return edited(sql, [(first, last, known[name] + alias) for name, (first, last, alias) in mentions(sql)])
    instead = {table_span(one)[0]: known[table_name(one).lower()] for one in base_tables(tree)}
    edits = reading(tree, instead, naming=False)
    return edited(sql, edits + (_carrying(tree, *carried) if carried else []))


def _carrying(tree: exp.Expr, name: str, column: str) -> list[Edit]:
    edits: list[Edit] = []
    outer = [tree] if isinstance(tree, exp.Select) else list(tree.find_all(exp.Select))
    for select in outer if isinstance(tree, exp.Select | exp.SetOperation) else []:
        source = next((one for one in _read_by(select) if table_name(one).lower() == name.lower()), None)
        named = {one.alias_or_name for one in select.expressions}
        if source is not None and not select.is_star and column not in named:
            end = span(select.expressions[-1])[1]
            edits.append((end, end, f", {quoted_in_query(source.alias or source.name)}.{quoted_in_query(column)}"))
    return edits


def _read_by(select: exp.Select) -> list[exp.Table]:
    sources = [select.args.get("from_"), *(select.args.get("joins") or [])]
    return [one.this for one in sources if one is not None and isinstance(one.this, exp.Table)]


def _where(table: Table) -> str:
    location = table.location
    file = table.sql_path or Path(location.file)
    return f"{file.name}" if table.sql_path else f"{file.name}:{location.line}"
