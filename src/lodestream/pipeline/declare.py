"""Pipeline: the object that users declare their tables on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar, Unpack, overload

from lodestream.config import nearest
from lodestream.errors import DeclarationError
from lodestream.names import BATCH, ORDER, WEIGHT, feed_of, in_files_only
from lodestream.pipeline.definition import with_code
from lodestream.pipeline.functions import function_inputs
from lodestream.pipeline.graph import Graph, build_graph, sound_graph
from lodestream.pipeline.location import Location, caller_location, declaration_error, location_of
from lodestream.pipeline.options import (
    BronzeOptions,
    GoldOptions,
    ReferenceOptions,
    Shape,
    SilverOptions,
    file_beside,
    missing_file,
    table_options,
)
from lodestream.pipeline.sources import FileFormat, ReferenceData, SourceDeclaration
from lodestream.pipeline.sql import mentioned_inputs, query_inputs, read_query
from lodestream.pipeline.table import Table, Tier, check_name

F = TypeVar("F", bound=Callable[..., Any])
Derived = Literal["silver", "gold"]


_noting: ContextVar[bool] = ContextVar("noting", default=False)


@contextmanager
def noting_problems() -> Iterator[None]:
    """Inside, what is wrong with a query or a function is raised by `graph()`, all of it together."""
    before = _noting.set(True)
    try:
        yield
    finally:
        _noting.reset(before)


class Pipeline:
    """A named set of tables. Declaring registers, and does nothing else: no Spark, no files written."""

    def __init__(self, name: str) -> None:
        self.location = caller_location()
        self.name = check_name(name, self.location, "pipeline")
        self._tables: dict[str, Table] = {}
        self._noted: dict[str, list[DeclarationError]] = {}

    def __repr__(self) -> str:
        return f"Pipeline({self.name!r}, {len(self._tables)} tables)"

    @property
    def tables(self) -> dict[str, Table]:
        """The tables by full name, in the order of declaration."""
        return dict(self._tables)

    def graph(self, *, tolerant: bool = False) -> Graph:
        """The tables with their inputs resolved; DeclarationError when they do not fit together.

        A tolerant graph is one to look at, not to run: a table that cannot be as declared, because its query or
        contract cannot be read now or it names an input which is not there, stands in it with its `problem`.
        """
        return build_graph(self._with_code(), self._noted, tolerant=tolerant)

    def sound_graph(self) -> tuple[Graph, dict[str, list[DeclarationError]]]:
        """The tables that fit together, and what is wrong with the others, by their names."""
        return sound_graph(self._with_code(), self._noted)

    def _with_code(self) -> dict[str, Table]:
        """Each function's code is read now, once: this process goes on with what it has imported, edited or not."""
        self._tables = {name: with_code(table) for name, table in self._tables.items()}
        return self._tables

    def changes(self, name: str, spark: Any, *, since: int | None = None, catalog: str = "lode") -> Any:
        """The change feed of a table as a DataFrame of the given Spark session: its columns, and `_weight` beside them.

        `_weight` is 1 for a row that appeared and -1 for one that went away; a table that only grows is its own feed,
        and one that is replaced in place is compared with what it was. `since` is a snapshot to begin after.
        """
        full = self.graph().select([name]).names[0]
        if self._tables[full].tier == "gold" or self._tables[full].is_reference:
            return _compared(spark, f"{catalog}.{full}", since)
        feed = f"{catalog}.{feed_of(full)}"
        keyed = spark.catalog.tableExists(feed)
        reader = spark.read.option("start-snapshot-id", str(since)) if since is not None else spark.read
        rows = reader.table(feed if keyed else f"{catalog}.{full}")
        return rows.where(f"{WEIGHT} != 0").drop(ORDER, BATCH) if keyed else _weighted(rows, 1)

    def bronze(self, name: str, source: SourceDeclaration, **options: Unpack[BronzeOptions]) -> Table:
        """Captures a source as it is: raw bytes and coordinates, append-only."""
        here = caller_location()
        if not isinstance(source, SourceDeclaration):
            raise declaration_error(
                here,
                f"bronze.{name} has no source: {source!r}",
                why="Bronze captures what arrives; functions and queries belong in Silver and Gold",
                fix=f'{self.name}.bronze("{name}", Kafka("topic"))',
            )
        return self._add("bronze", name, here, dict(options), kind="source", source=source.beside(here.folder))

    def reference(
        self,
        name: str,
        path: str | Path,
        *,
        format: FileFormat = "csv",
        schema: str | None = None,
        **options: Unpack[ReferenceOptions],
    ) -> Table:
        """Silver reference data from a file beside the pipeline, loaded again when it changes."""
        here = caller_location()
        file = str(path) if ":/" in str(path) else str(file_beside("path", path, here))
        source = ReferenceData(file, format=format, schema=schema)
        return self._add("silver", name, here, dict(options), kind="reference", source=source)

    @overload
    def silver(self, name: F, /) -> F: ...
    @overload
    def silver(self, name: str, /, *, sql: str | Path, **options: Unpack[SilverOptions]) -> Table: ...
    @overload
    def silver(self, name: str | None = None, /, **options: Unpack[SilverOptions]) -> Callable[[F], F]: ...

    def silver(self, name: Any = None, /, *, sql: str | Path | None = None, **options: Any) -> Any:
        """A consistent table: decorates a function, or takes a query. The function stays a plain function."""
        return self._derive("silver", name, sql, options)

    @overload
    def gold(self, name: F, /) -> F: ...
    @overload
    def gold(self, name: str, /, *, sql: str | Path, **options: Unpack[GoldOptions]) -> Table: ...
    @overload
    def gold(self, name: str | None = None, /, **options: Unpack[GoldOptions]) -> Callable[[F], F]: ...

    def gold(self, name: Any = None, /, *, sql: str | Path | None = None, **options: Any) -> Any:
        """A table of value, kept equal to a recompute: takes a query, or decorates a function."""
        return self._derive("gold", name, sql, options)

    def _derive(self, tier: Derived, name: Any, sql: str | Path | None, options: dict[str, Any]) -> Any:
        here = caller_location()
        if sql is not None:
            return self._try(tier, name, here, lambda: self._add_query(tier, name, sql, options, here))
        if callable(name):
            return self._try_function(tier, None, name, options, here)
        return lambda function: self._try_function(tier, name, function, options, here)

    def _try_function(self, tier: Derived, name: Any, function: Any, options: dict[str, Any], here: Location) -> Any:
        short = name if name is not None else getattr(function, "__name__", None)
        self._try(tier, short, here, lambda: self._add_function(tier, name, function, options, here))
        return function

    def _try(self, tier: Tier, short: Any, here: Location, add: Callable[[], Any]) -> Any:
        """While a file is loaded, an error of one declaration waits for those of the others."""
        try:
            return add()
        except DeclarationError as error:
            name = f"{tier}.{short}"
            if not _noting.get() or name in self._tables:
                raise
            check_name(short, here)
            self._noted.setdefault(name, []).append(error)
            return self._tables.setdefault(name, Table(name=name, tier=tier, kind="sql", location=here))

    def _add_query(self, tier: Derived, name: str, sql: str | Path, options: dict[str, Any], here: Location) -> Table:
        path = sql_file(sql, here)
        if path is None:
            text = str(sql)
            tree = read_query(text, here, inline=True)
        else:
            try:
                text = read_sql(path, here)
                tree = read_query(text, Location(str(path), 1))
            except DeclarationError as problem:
                return self._add(tier, name, here, options, kind="sql", sql_path=path, problem=problem)
        found = query_inputs(tree) if tree is not None else mentioned_inputs(text)
        places = tuple(Location(str(path), one.line) if path else here for one in found)
        inputs = tuple(one.name for one in found)
        return self._add(
            tier, name, here, options, kind="sql", sql=text, sql_path=path, inputs=inputs, input_locations=places
        )

    def _add_function(self, tier: Derived, name: str | None, function: F, options: dict[str, Any], here: Location) -> F:
        if not callable(function):
            raise declaration_error(here, f"{tier} decorates functions, not {function!r}")
        place = location_of(function) or here
        inputs = function_inputs(function, place)
        short = name if name is not None else getattr(function, "__name__", None)
        table = self._add(
            tier, short, here, options,
            kind="function", function=function, inputs=inputs, input_locations=(place,) * len(inputs),
            location=place,
        )  # fmt: skip
        if tier == "gold" and not (table.keys or table.contract or table.strategy == "full"):
            del self._tables[table.name]
            raise declaration_error(
                place,
                f"{table.name} needs keys",
                why="a query shows which rows a change touches; a function must say it",
                fix=f'@{self.name}.gold(keys=...), or strategy="full" to recompute all of it',
            )
        return function

    def _add(self, tier: Tier, short: Any, here: Location, options: dict[str, Any], **fields: Any) -> Table:
        shape: Shape = "reference" if fields["kind"] == "reference" else tier
        name = f"{tier}.{check_name(short, here)}"
        fields.setdefault("location", here)
        table = Table(name=name, tier=tier, **fields, **table_options(options, shape, here))
        if table.problem is None:
            check_lookup(table)
            contract = table.contract
            absent = missing_file("contract", contract, here) if isinstance(contract, Path) else None
            table = replace(table, problem=absent)
        if name in self._tables:
            raise declaration_error(
                table.location,
                f"{name} is declared twice",
                why=f"the first is at {self._tables[name].location}",
                fix="rename or remove one",
            )
        self._tables[name] = table
        return table


def sql_file(sql: str | Path, here: Location) -> Path | None:
    """The file of a query: a Path or text that ends in .sql names one, other text is the query."""
    if isinstance(sql, str) and not sql.strip().lower().endswith(".sql"):
        return None
    return file_beside("sql", sql, here)


def read_sql(path: Path, here: Location) -> str:
    """The text of a query that stands in a file."""
    absent = missing_file("sql", path, here)
    if absent is not None:
        raise absent
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise declaration_error(
            here, f"{path} cannot be read", why=str(error), fix="make it readable, as UTF-8 text"
        ) from error


def check_lookup(table: Table) -> None:
    """lookup= can only name inputs, and must leave one to follow."""
    for one in table.lookup or ():
        if one not in table.inputs:
            close = nearest(one, table.inputs)
            raise declaration_error(
                table.location,
                f'lookup names "{one}", which {table.name} does not read',
                why=f"its inputs: {', '.join(table.inputs)}",
                fix=f"did you mean {close}?" if close else "remove it",
            )
    if table.inputs and table.lookup is not None and set(table.lookup) == set(table.inputs):
        raise declaration_error(
            table.location,
            f"{table.name} looks up all its inputs",
            why="a table is brought up to date when an input that it follows changes",
            fix="leave the input to follow out of lookup",
        )


def _compared(spark: Any, table: str, since: int | None) -> Any:
    """Rows that a table has now and had not, and rows it had: an incremental read would skip them silently."""
    now = spark.read.table(table)
    if since is None:
        return _weighted(now, 1)
    then = spark.read.option("versionAsOf", str(since)).table(table)
    before = then.drop(*[one for one in then.columns if in_files_only(one)])
    come, gone = now.exceptAll(before), before.exceptAll(now)
    return _weighted(come, 1).unionAll(_weighted(gone, -1))


def _weighted(rows: Any, weight: int) -> Any:
    return rows.selectExpr("*", f"{weight} AS {WEIGHT}")
