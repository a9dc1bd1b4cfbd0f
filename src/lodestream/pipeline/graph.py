"""The tables of a pipeline with their inputs resolved, in the order they can be computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter

from lodestream.config import nearest
from lodestream.errors import DeclarationError
from lodestream.pipeline.location import declaration_error, raise_together
from lodestream.pipeline.resolve import resolve_input
from lodestream.pipeline.table import Table


@dataclass(frozen=True, slots=True)
class Graph:
    """`tables` are the selected ones, inputs before readers; questions are answered over the whole pipeline."""

    tables: tuple[Table, ...]
    everything: Mapping[str, Table]
    edges: Mapping[str, tuple[str, ...]]

    def __iter__(self) -> Iterator[Table]:
        return iter(self.tables)

    def __contains__(self, name: object) -> bool:
        return any(table.name == name for table in self.tables)

    def __getitem__(self, name: str) -> Table:
        return self.everything[name]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(table.name for table in self.tables)

    def inputs(self, name: str) -> tuple[str, ...]:
        """The full names of a table's inputs, in the order of Table.inputs."""
        return self.edges[name]

    def lookups(self, name: str) -> tuple[str, ...]:
        """The inputs that are read whole."""
        written = self.everything[name].lookups
        pairs = zip(self.everything[name].inputs, self.edges[name], strict=True)
        return tuple(full for one, full in pairs if one in written)

    def corrections(self, name: str) -> tuple[str, ...]:
        """The lookups whose changes correct the table's stored rows."""
        written = self.everything[name].corrected_by
        pairs = zip(self.everything[name].inputs, self.edges[name], strict=True)
        return tuple(full for one, full in pairs if one in written)

    def streams(self, name: str) -> tuple[str, ...]:
        """The inputs that are followed: their changes make the table's batches."""
        looked_up = self.lookups(name)
        return tuple(one for one in self.edges[name] if one not in looked_up)

    def readers(self, name: str) -> tuple[str, ...]:
        """The tables that read this one directly."""
        return tuple(one for one in self.everything if name in self.edges[one])

    def upstream(self, name: str) -> tuple[str, ...]:
        """Everything this table is made from, inputs before readers."""
        return self._reached(name, self.edges)

    def downstream(self, name: str) -> tuple[str, ...]:
        """Everything made from this table, inputs before readers."""
        return self._reached(name, {one: self.readers(one) for one in self.everything})

    def select(self, patterns: Iterable[str]) -> Graph:
        """Only the tables whose full or short name matches a pattern such as 'silver.*'."""
        wanted = [pattern.strip() for pattern in patterns]
        for pattern in wanted:
            if not any(_matches(table, pattern) for table in self.tables):
                raise self._nothing_matches(pattern)
        chosen = tuple(table for table in self.tables if any(_matches(table, one) for one in wanted))
        return replace(self, tables=chosen)

    def _reached(self, name: str, steps: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        found: set[str] = set()
        waiting = list(steps[name])
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting.extend(steps[one])
        return tuple(one for one in self.everything if one in found)

    def _nothing_matches(self, pattern: str) -> DeclarationError:
        close = nearest(pattern, [*self.names, *(table.short for table in self.tables)])
        return DeclarationError(
            f'no table matches "{pattern}"',
            why=f"the tables: {', '.join(self.names) or 'none'}",
            fix=f"did you mean {close}?" if close else "use a name or a pattern such as 'silver.*'",
        )


Problems = list[DeclarationError]


def build_graph(
    declared: Mapping[str, Table], noted: Mapping[str, Problems] | None = None, *, tolerant: bool = False
) -> Graph:
    """Resolve every input and order the tables; all errors come together, those noted before among them.

    In a tolerant graph a table that something is wrong with stands as its `problem`, without inputs.
    """
    graph, wrong = sound_graph(declared, noted or {})
    if not tolerant:
        raise_together([one for found in wrong.values() for one in found])
        return graph
    everything = {
        name: _problematic(declared[name], wrong[name]) if name in wrong else table
        for name, table in graph.everything.items()
    }
    edges = {name: () if name in wrong else inputs for name, inputs in graph.edges.items()}
    return Graph(tuple(everything.values()), everything, edges)


def _problematic(table: Table, wrong: Problems) -> Table:
    first = wrong[0] if wrong else table.problem
    return replace(_opaque(table), problem=first)


def sound_graph(declared: Mapping[str, Table], noted: Mapping[str, Problems]) -> tuple[Graph, dict[str, Problems]]:
    """The tables that have no problem, and those of the others by name. What reads such a one finds it opaque."""
    unread = {name: [table.problem] for name, table in declared.items() if table.problem is not None}
    wrong = {name: [*noted.get(name, []), *unread.get(name, [])] for name in {**noted, **unread}}
    tables = {name: _opaque(table) if name in wrong else table for name, table in declared.items()}
    for table in declared.values():
        pairs = zip(table.inputs, table.input_locations, strict=True)
        found = [resolve_input(table, one, place, declared) for one, place in pairs]
        _note(wrong, tables, table.name, [one for one in found if isinstance(one, DeclarationError)])
    edges = {name: _edges(table, declared) for name, table in tables.items()}
    order = _order(tables, edges, wrong)
    ordered = {name: _with_lookups(tables[name], edges[name], declared) for name in order}
    graph = Graph(tuple(ordered.values()), ordered, edges)
    for table in graph:
        checks = (_decode_problem, _correction_problem)
        _note(wrong, tables, table.name, [problem for check in checks if (problem := check(graph, table))])
    sound = tuple(table for table in graph if table.name not in wrong)
    return replace(graph, tables=sound), wrong


def _note(wrong: dict[str, Problems], tables: dict[str, Table], name: str, problems: Problems) -> None:
    if problems:
        wrong[name] = [*wrong.get(name, []), *problems]
        tables[name] = _opaque(tables[name])


def _opaque(table: Table) -> Table:
    """A table of which nothing is known but what others may rely on: its name and its contract."""
    return replace(table, inputs=(), input_locations=(), lookup=None, corrected_by=(), sql=None, function=None)


def _edges(table: Table, declared: Mapping[str, Table]) -> tuple[str, ...]:
    pairs = zip(table.inputs, table.input_locations, strict=True)
    found = (resolve_input(table, one, place, declared) for one, place in pairs)
    return tuple(one for one in found if isinstance(one, str))


def _order(tables: dict[str, Table], edges: dict[str, tuple[str, ...]], wrong: dict[str, Problems]) -> list[str]:
    """Inputs before readers. Circles are noted, and cut."""
    while True:
        try:
            return list(TopologicalSorter(edges).static_order())
        except CycleError as error:
            # graphlib lists each table before the one that reads it; an arrow here means "reads".
            path = list(reversed(error.args[1]))
            places = "; ".join(f"{name} at {tables[name].location}" for name in dict.fromkeys(path))
            problem = declaration_error(
                tables[path[0]].location,
                f"tables read each other in a circle: {' -> '.join(path)}",
                why=places,
                fix="take one of these inputs away, or split a table in two",
            )
            _note(wrong, tables, path[0], [problem])
            for name in path:
                wrong.setdefault(name, [])
                tables[name], edges[name] = _opaque(tables[name]), ()


def _with_lookups(table: Table, inputs: tuple[str, ...], declared: Mapping[str, Table]) -> Table:
    if table.lookup is not None:
        return replace(table, lookups=table.lookup)
    pairs = zip(table.inputs, inputs, strict=True)
    references = tuple(one for one, full in pairs if declared[full].is_reference)
    # A table made of reference data alone follows it: otherwise nothing would ever wake it.
    return replace(table, lookups=references if len(references) < len(inputs) else ())


def _decode_problem(graph: Graph, table: Table) -> DeclarationError | None:
    if table.decode is None or table.tier != "silver":
        return None
    raw = [one for one in graph.streams(table.name) if graph[one].tier == "bronze"]
    if len(raw) == 1:
        return None
    return declaration_error(
        table.location,
        f"{table.name} decodes {len(raw)} Bronze inputs",
        why="decode= reads the raw bytes of exactly one Bronze table: " + (", ".join(raw) or "there is none"),
        fix="decode each Bronze table in a Silver table of its own" if raw else "remove decode=",
    )


def _correction_problem(_graph: Graph, table: Table) -> DeclarationError | None:
    wrong = next((one for one in table.corrected_by if one not in table.lookups), None)
    if wrong is None:
        return None
    if wrong in table.inputs:
        why, fix = "every change of an input that is followed is in the table anyway", f'remove "{wrong}"'
    else:
        close = nearest(wrong, table.lookups)
        why = f"it looks up: {', '.join(table.lookups) or 'nothing'}"
        fix = f"did you mean {close}?" if close else "name a table that it looks up"
    return declaration_error(
        table.location, f'corrected_by names "{wrong}", which {table.name} does not look up', why=why, fix=fix
    )


def _matches(table: Table, pattern: str) -> bool:
    return fnmatchcase(table.name, pattern) or fnmatchcase(table.short, pattern)
