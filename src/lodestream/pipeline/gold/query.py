"""A Gold query in normal form: every column qualified, aliases and ordinals expanded, simple subqueries merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from lodestream.errors import DeclarationError
from lodestream.pipeline.gold.clauses import drop_hints, refuse_unread
from lodestream.pipeline.gold.flatten import flatten, inline_ctes
from lodestream.pipeline.gold.functions import SESSION_WINDOW, WINDOW, called, changing, has_aggregate
from lodestream.pipeline.gold.plan import InputInfo, NotProvableError
from lodestream.pipeline.gold.statement import Statement, table_name
from lodestream.pipeline.gold.types import SqlType, parse_type


@dataclass(frozen=True, slots=True)
class Output:
    name: str
    expression: exp.Expr


@dataclass(frozen=True, slots=True)
class Source:
    """One item of FROM: a table or a subquery, with the join that brings it in (None for the first)."""

    alias: str
    node: exp.Expr
    join: exp.Join | None

    @property
    def table(self) -> str | None:
        return table_name(self.node).lower() if isinstance(self.node, exp.Table) else None


@dataclass(frozen=True, slots=True)
class Query:
    select: exp.Select
    outputs: tuple[Output, ...]
    group: tuple[exp.Expr, ...] | None
    statement: Statement
    notes: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(output.name for output in self.outputs)

    def sources(self) -> tuple[Source, ...]:
        return sources(self.select)

    def info(self, source: Source) -> InputInfo | None:
        found = (info for name, info in self.statement.infos.items() if name.lower() == source.table)
        return next(found, None)

    def column_type(self, column: exp.Column) -> SqlType | None:
        for source in self.sources():
            info = self.info(source)
            if source.alias == column.table and info is not None:
                types = {name.lower(): kind for name, kind in info.columns.items()}
                return parse_type(types.get(column.name))
        return None


def sources(select: exp.Select) -> tuple[Source, ...]:
    first = select.args["from_"].this
    joined = [(join.this, join) for join in select.args.get("joins") or []]
    return tuple(Source(node.alias_or_name, node, join) for node, join in [(first, None), *joined])


def read_query(statement: Statement) -> Query:
    """Normal form, or NotProvableError when the query as a whole allows no incremental way."""
    tree = statement.tree.copy()
    for node in tree.walk():
        node.comments = None  # they would end up in the middle of the pieces
    drop_hints(tree)
    refuse_unread(tree)
    moving = changing(tree)
    if moving:
        raise NotProvableError(
            f"{moving} gives another answer at another time",
            "compute the value in Silver, or leave it to the reader of the table",
        )
    unknown = [name for name, info in statement.infos.items() if not info.columns]
    if unknown:
        raise NotProvableError(
            f"the columns of {', '.join(unknown)} are not known yet", "give the table a contract, or run it once"
        )
    names = _output_names(tree, statement.infos)
    notes = _without_order(tree)
    select = flatten(inline_ctes(_qualified(_as_select(tree), statement.infos)))
    _refuse_unresolved(select)
    outputs = tuple(
        Output(names.get(item.alias_or_name.lower(), item.alias_or_name), item.unalias()) for item in select.expressions
    )
    _refuse_twins(outputs)
    return Query(select, outputs, group_of(select), statement, notes)


def _without_order(select: exp.Query) -> tuple[str, ...]:
    if isinstance(select, exp.Select) and not select.args.get("from_"):
        raise NotProvableError("it reads no table")
    if select.args.get("limit") or select.args.get("offset"):
        raise NotProvableError(
            "LIMIT depends on every row", "drop LIMIT here and put it into the query that reads the table"
        )
    ordered = [clause for clause in ("order", "sort", "distribute", "cluster") if select.args.get(clause)]
    for clause in ordered:
        select.set(clause, None)
    return ("ORDER BY is ignored: a table has no order, its readers do",) if ordered else ()


def _as_select(tree: exp.Query) -> exp.Select:
    """A UNION is read like a subquery, so that what holds for its branches is found in one place."""
    if isinstance(tree, exp.Select):
        return tree
    if not isinstance(tree, exp.Union):
        raise NotProvableError(f"{tree.key.upper()} compares two queries as wholes")
    with_ = tree.args.get("with_")
    select = exp.select("*").from_(exp.Subquery(this=tree, alias=exp.TableAlias(this=exp.to_identifier("_lode_all"))))
    if with_ is not None:
        select.set("with_", with_.pop())
    return select


def group_of(select: exp.Select) -> tuple[exp.Expr, ...] | None:
    """The group expressions; () for one group of all rows; None when the query gives a row per row."""
    items = [item.unalias() for item in select.expressions]
    clause = select.args.get("group")
    aggregated = any(has_aggregate(item) for item in items)
    if clause is None:
        if aggregated or select.args.get("having"):
            return ()
        plain = not any(item.find(exp.Window) for item in items)
        return tuple(items) if select.args.get("distinct") and plain else None
    levels = clause.find(exp.Rollup, exp.Cube, exp.GroupingSets)
    if levels is not None:
        raise NotProvableError(f"{levels.key.upper()} mixes totals of several levels", "make one table per level")
    if clause.args.get("all"):
        return tuple(item for item in items if not has_aggregate(item))
    return tuple(clause.expressions)


def _output_names(tree: exp.Query, infos: Mapping[str, InputInfo]) -> dict[str, str]:
    """The spelling of each output column: qualifying lowers them all, readers should see what the user wrote."""
    names = {column.lower(): column for info in infos.values() for column in info.columns}
    for item in tree.selects:
        if not (item.is_star or isinstance(item, (exp.Alias, exp.Column, exp.Dot))):
            raise DeclarationError(
                f"a column of a Gold query has no name: {item.sql('spark')}",
                why="Spark would call the table's column by the text of the expression",
                fix=f"{item.sql('spark')} AS a_good_name",
            )
        names[item.output_name.lower()] = item.output_name
    return names


def _refuse_twins(outputs: Sequence[Output]) -> None:
    seen = set[str]()
    for output in outputs:
        if output.name.lower() in seen:
            raise DeclarationError(
                f"a Gold query has two columns named {output.name}",
                why="a table's columns are told apart by their names, in either case",
                fix=f"give one of them another name: {output.expression.sql('spark')} AS another_name",
            )
        seen.add(output.name.lower())


def _qualified(tree: exp.Select, infos: Mapping[str, InputInfo]) -> exp.Select:
    schema = MappingSchema(dialect="spark")
    for name, info in infos.items():
        schema.add_table(name, {column: kind or "string" for column, kind in info.columns.items()})
    for select in tree.find_all(exp.Select):
        _expand_window_columns(select)
    try:
        return qualify(tree, schema=schema, dialect="spark", validate_qualify_columns=False, quote_identifiers=False)
    except SqlglotError as error:
        raise NotProvableError(f"it could not be resolved ({str(error).splitlines()[0]})") from error


def _expand_window_columns(select: exp.Select) -> None:
    """`window.start` means the window of the GROUP BY; write it out, so that it is seen to be the group key."""
    clause = select.args.get("group")
    calls = {called(c): c for c in clause.find_all(exp.Anonymous)} if clause else {}
    for column in list(select.find_all(exp.Column)):
        for name in (WINDOW, SESSION_WINDOW):
            if name in calls and not _inside_call(column) and name in (column.table.lower(), column.name.lower()):
                field = column.this if column.table.lower() == name else None
                call = calls[name].copy()
                column.replace(exp.Dot(this=call, expression=field.copy()) if field else call)


def _inside_call(column: exp.Column) -> bool:
    call = column.find_ancestor(exp.Anonymous)
    return call is not None and called(call) in (WINDOW, SESSION_WINDOW)


def _refuse_unresolved(select: exp.Select) -> None:
    for column in select.find_all(exp.Column):
        if not column.table and not isinstance(column.this, exp.Star):
            raise NotProvableError(f"column {column.name} is not a column of the inputs")
