"""The user's SQL as written: parsed once, its inputs found, its tables replaced by views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from lodestream.errors import DeclarationError
from lodestream.pipeline.gold.functions import WINDOW
from lodestream.pipeline.gold.plan import InputInfo, now_view

# sqlglot takes `window(` for the WINDOW clause. The stand-in is as long, so positions in the text stay true.
_STAND_IN = "w_ndow"


@dataclass(frozen=True, slots=True)
class Statement:
    """`full_sql` is the user's own text, character by character, except that it reads the `now` views."""

    tree: exp.Query
    inputs: tuple[str, ...]
    infos: Mapping[str, InputInfo]
    full_sql: str

    @property
    def streams(self) -> tuple[str, ...]:
        """The inputs whose changes drive the table: all but the lookups, or all when there are only lookups."""
        found = tuple(name for name in self.inputs if not self.infos[name].lookup)
        return found or self.inputs


def read_statement(sql: str, inputs: Mapping[str, InputInfo]) -> Statement:
    tree = _parse(sql)
    known = {name.lower(): name for name in inputs}
    names: dict[str, None] = {}
    for table in base_tables(tree):
        name = known.get(table_name(table).lower())
        if name is None:
            raise DeclarationError(
                f"a Gold query reads {table_name(table)}, which is not one of its inputs",
                why=f"the inputs are {', '.join(inputs) or 'none'}",
                fix="write the table as tier.name, as it is declared in the pipeline",
            )
        _refuse_moments(table)
        names[name] = None
    infos = {name: inputs[name] for name in names}
    return Statement(tree, tuple(names), infos, _with_views(sql, tree, known))


def _refuse_moments(table: exp.Table) -> None:
    if table.args.get("version") or table.args.get("when"):
        raise DeclarationError(
            f"a Gold query reads {table_name(table)} as it was",
            why="a Gold table says which snapshot of each input it contains, and follows them as they go on",
            fix="drop VERSION AS OF or TIMESTAMP AS OF; for the past, read the table itself at an earlier snapshot",
        )
    if table.args.get("sample"):
        raise DeclarationError(
            f"a Gold query reads a sample of {table_name(table)}",
            why="Gold equals a recompute over its inputs, and a sample has other rows each time",
            fix="choose rows by what they hold: WHERE pmod(xxhash64(a_key), 10) = 0 for a tenth",
        )


def query_inputs(sql: str) -> tuple[str, ...]:
    """The tables a query reads, as `tier.name`, in the order of their first mention."""
    return tuple(dict.fromkeys(table_name(table) for table in base_tables(_parse(sql))))


def base_tables(tree: exp.Expr) -> list[exp.Table]:
    """Every mention of a table that is not a common table expression of this query."""
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    mentioned = (table for table in tree.find_all(exp.Table) if not table.find_ancestor(exp.Hint))
    return [table for table in mentioned if table.db or table.name.lower() not in ctes]


def table_name(table: exp.Table) -> str:
    """`tier.name`; a function that gives a table is named by its call."""
    return f"{table.db}.{table.name}" if table.db else str(table.name) or table.this.sql("spark")


def _parse(sql: str) -> exp.Query:
    try:
        trees = [tree for tree in sqlglot.parse(_stand_in_windows(sql), dialect="spark") if tree is not None]
    except SqlglotError as error:
        raise DeclarationError(
            "a Gold query cannot be parsed",
            why=str(error).splitlines()[0],
            fix="check the SQL in a Spark notebook, then in the file",
        ) from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise DeclarationError(
            "a Gold file must hold exactly one SELECT",
            why=f"it holds {len(trees)} statement(s): {', '.join(tree.key.upper() for tree in trees) or 'nothing'}",
            fix="keep the one query that gives the table's rows; Lodestream writes them",
        )
    for call in trees[0].find_all(exp.Anonymous):
        if call.name == _STAND_IN:
            call.set("this", WINDOW)
    return trees[0]


def _stand_in_windows(sql: str) -> str:
    tokens = Spark().tokenize(sql)
    for token, following in pairwise(tokens):
        if token.token_type == TokenType.WINDOW and following.token_type == TokenType.L_PAREN:
            sql = sql[: token.start] + _STAND_IN + sql[token.end + 1 :]
    return sql


def _with_views(sql: str, tree: exp.Query, known: Mapping[str, str]) -> str:
    """Replace table names in the text itself: a query that is only run, never rewritten, must not be re-rendered."""
    spans = []
    for table in base_tables(tree):
        parts = [part.meta for part in table.parts]
        alias = "" if table.alias else f" AS {table.name}"
        view = now_view(known[table_name(table).lower()])
        spans.append((parts[0]["start"], parts[-1]["end"] + 1, view + alias))
    for column in tree.find_all(exp.Column):
        if column.args.get("db"):  # silver.trips.fare: the view is known by its short name only
            spans.append((column.parts[0].meta["start"], column.args["table"].meta["start"], ""))
    for start, end, view in sorted(spans, reverse=True):
        sql = sql[:start] + view + sql[end:]
    return sql
