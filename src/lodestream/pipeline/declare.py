"""Pipeline: the object that users declare their tables on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar, Unpack, overload

from lodestream.config import nearest
from lodestream.pipeline.functions import function_inputs
from lodestream.pipeline.graph import Graph, build_graph
from lodestream.pipeline.location import Location, caller_location, declaration_error, location_of
from lodestream.pipeline.options import (
    BronzeOptions,
    GoldOptions,
    ReferenceOptions,
    Shape,
    SilverOptions,
    existing_file,
    table_options,
)
from lodestream.pipeline.sources import FileFormat, Files, Kafka, SourceDecl, Stream
from lodestream.pipeline.sql import mentioned_inputs, query_inputs, read_query
from lodestream.pipeline.table import Table, Tier, check_name

F = TypeVar("F", bound=Callable[..., Any])
Derived = Literal["silver", "gold"]


class Pipeline:
    """A named set of tables. Declaring registers, and does nothing else: no Spark, no files written."""

    def __init__(self, name: str) -> None:
        self.location = caller_location()
        self.name = check_name(name, self.location, "pipeline")
        self._tables: dict[str, Table] = {}

    def __repr__(self) -> str:
        return f"Pipeline({self.name!r}, {len(self._tables)} tables)"

    @property
    def tables(self) -> dict[str, Table]:
        """The tables by full name, in the order of declaration."""
        return dict(self._tables)

    def graph(self) -> Graph:
        """The tables with their inputs resolved; DeclarationError when they do not fit together."""
        return build_graph(self._tables)

    def changes(self, name: str, spark: Any, *, since: int | None = None, catalog: str = "lode") -> Any:
        """The change feed of a table as a DataFrame of the given Spark session: its columns, and `_weight` beside them.

        `_weight` is 1 for a row that appeared and -1 for one that went away; a table that only grows is its own feed.
        `since` is a snapshot of the feed to begin after.
        """
        full = self.graph().select([name]).names[0]
        feed = f"{catalog}.{full}__changes"
        keyed = spark.catalog.tableExists(feed)
        reader = spark.read.option("start-snapshot-id", str(since)) if since is not None else spark.read
        rows = reader.table(feed if keyed else f"{catalog}.{full}")
        return rows.where("_weight != 0").drop("_lode", "_batch") if keyed else rows.selectExpr("*", "1 AS _weight")

    def bronze(self, name: str, source: SourceDecl, **options: Unpack[BronzeOptions]) -> Table:
        """Captures a source as it is: raw bytes and coordinates, append-only."""
        here = caller_location()
        if not isinstance(source, Kafka | Files | Stream):
            raise declaration_error(
                here,
                f"bronze.{name} has no source: {source!r}",
                why="Bronze captures what arrives; functions and queries belong in Silver and Gold",
                fix=f'{self.name}.bronze("{name}", Kafka("topic"))',
            )
        if isinstance(source, Files):
            source = source.beside(here.folder)
        return self._add("bronze", name, here, dict(options), kind="source", source=source)

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
        file = str(path) if ":/" in str(path) else str(existing_file("path", path, here))
        source = Files(file, format=format, schema=schema)
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
            return self._add_query(tier, name, sql, options, here)
        if callable(name):
            return self._add_function(tier, None, name, options, here)
        return lambda function: self._add_function(tier, name, function, options, here)

    def _add_query(self, tier: Derived, name: str, sql: str | Path, options: dict[str, Any], here: Location) -> Table:
        text, path = read_sql(sql, here)
        tree = read_query(text, Location(str(path), 1) if path else here, inline=path is None)
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
        check_lookup(table)
        if name in self._tables:
            raise declaration_error(
                table.location,
                f"{name} is declared twice",
                why=f"the first is at {self._tables[name].location}",
                fix="rename or remove one",
            )
        self._tables[name] = table
        return table


def read_sql(sql: str | Path, here: Location) -> tuple[str, Path | None]:
    """The text of a query, and its file: a Path or text that ends in .sql names one, other text is the query."""
    if isinstance(sql, str) and not sql.strip().lower().endswith(".sql"):
        return sql, None
    path = existing_file("sql", sql, here)
    return path.read_text(encoding="utf-8"), path


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
