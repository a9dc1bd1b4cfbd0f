"""What the next run does to tables whose declaration has changed: which are rebuilt, and what that reads. No JVM."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lodestream.contracts import Contract
from lodestream.contracts.compatibility import changes
from lodestream.contracts.evolution import Step, evolve
from lodestream.contracts.quoting import name as quoted
from lodestream.errors import LodeError
from lodestream.names import feed_of, ours
from lodestream.pipeline import Table
from lodestream.pipeline.definition import changed_parts, code_of, definition_parts, read_parts
from lodestream.pipeline.gold.plan import InputInfo
from lodestream.planning.keyed import keyed
from lodestream.planning.project import Project, contract_of
from lodestream.tables.notes import CODE, PARTS
from lodestream.tables.promised import promised
from lodestream.tables.snapshot import Snapshot, live_rows

if TYPE_CHECKING:
    from lodestream.tables.inspect import TableView

Effect = Literal["build", "rebuild", "alter", "new rows"]


@dataclass(frozen=True, slots=True)
class TableRead:
    """A table or file that is read as a whole: its rows and its bytes, None where nobody knows."""

    name: str
    rows: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """`build` and `rebuild` make the whole table from what is read; `alter` changes columns in place, without reading;
    `new rows` applies to rows that come from now on. `then` are the tables that follow it."""

    table: str
    effect: Effect
    why: str
    reads: tuple[TableRead, ...] = ()
    then: tuple[str, ...] = ()


def planned_changes(project: Project) -> tuple[PlannedChange, ...]:
    """Inputs before readers; nothing when the catalog does not answer, which is told elsewhere."""
    try:
        stored = _Stored(project)
        return tuple(change for table in project.graph for change in stored.changes(table))
    except LodeError:
        return ()


class _Stored:
    """The project's tables as they are stored, each looked at once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        from lodestream.tables.inspect import Inspector  # a start of `lode run` does not wait for it

        self._inspector = Inspector(project.config)
        self._views: dict[str, TableView | None] = {}
        self._columns: dict[str, dict[str, str]] = {}

    def changes(self, table: Table) -> Iterator[PlannedChange]:
        view = self.view(table.name)
        self._columns[table.name] = _readable(view)
        if table.is_reference:
            yield from self._file(table, view)
        elif table.tier == "silver" and view is not None:
            yield from self._silver(table, view)
        elif table.tier == "gold":
            yield from self._gold(table, view)

    def view(self, name: str) -> TableView | None:
        if name not in self._views:
            self._views[name] = self._inspector.look(name)
        return self._views[name]

    def _gold(self, table: Table, view: TableView | None) -> Iterator[PlannedChange]:
        graph = self._project.graph
        inputs = graph.inputs(table.name)
        reads = tuple(self._read(one) for one in inputs)
        stamped = view.last_stamped() if view else None
        if stamped is None or stamped.stamp is None:
            if any(one.rows for one in reads):
                yield PlannedChange(table.name, "build", "it has no rows yet", reads, graph.downstream(table.name))
            return
        before = read_parts(stamped.stamp.notes.get(PARTS))
        infos = [InputInfo(one, self._columns.get(one, {}), lookup=one in graph.lookups(table.name)) for one in inputs]
        if before is None or not all(info.columns for info in infos):
            return  # made by an earlier version, or from tables that are not there: only a run can tell
        why = list(changed_parts(before, definition_parts(table, infos)))
        if why:
            yield PlannedChange(table.name, "rebuild", "; ".join(why), reads, graph.downstream(table.name))

    def _silver(self, table: Table, view: TableView) -> Iterator[PlannedChange]:
        then = self._project.graph.downstream(table.name)
        rows = f"the {_held(view, head):,} stored rows stay" if (head := view.head()) else "there are no rows yet"
        contract, before = contract_of(table), promised(dict(view.table.properties))
        if contract is not None and before is not None and contract != before:
            steps = _steps(self._columns[table.name], contract)
            self._columns[table.name] = _after(self._columns[table.name], steps)
            if steps:
                why = f"contract {contract.title}: {'; '.join(map(str, steps))}; {rows}, with null in what is added"
                yield PlannedChange(table.name, "alter", why, then=then)
            else:
                said = "; ".join(f"{one.path} {one.what}" for one in changes(before, contract)) or "its text changed"
                yield PlannedChange(
                    table.name, "new rows", f"contract {contract.title}: {said}; {rows} as judged", then=then
                )
        home = self.view(feed_of(table.name)) if keyed(self._project.graph, table.name) else view
        stamped = home.last_stamped() if home else None
        made = stamped.stamp.notes.get(CODE) if stamped and stamped.stamp else None
        if made is not None and made != code_of(table):
            why = f"its code changed; {rows} as the old code made them"
            yield PlannedChange(table.name, "new rows", why, then=then)

    def _file(self, table: Table, view: TableView | None) -> Iterator[PlannedChange]:
        stamped = view.last_stamped() if view else None
        file = table.reference.file if table.reference else None
        if stamped is None or stamped.stamp is None or file is None:
            return
        known = stamped.stamp.positions.get("file") or {}
        try:
            content = file.read_bytes()
        except OSError:
            return
        if known.get("sha256") not in (None, hashlib.sha256(content).hexdigest()):
            read = TableRead(file.name, None, len(content))
            then = self._project.graph.downstream(table.name)
            yield PlannedChange(table.name, "rebuild", "its file changed", (read,), then)

    def _read(self, name: str) -> TableRead:
        view = self.view(name)
        head = view.head() if view else None
        if view is None or head is None:
            return TableRead(name, None, None)
        return TableRead(name, _held(view, head), int(head.summary.get("total-files-size", "0")))


def _held(view: TableView, head: Snapshot) -> int:
    """The rows that a reader finds, or about as many."""
    found = live_rows(view.ancestors(head))
    return head.live_rows if found is None else found


def _readable(view: TableView | None) -> dict[str, str]:
    """The columns as readers see them: without what a keyed or Gold table hides."""
    if view is None:
        return {}
    return {name: kind for name, kind in view.columns().items() if not ours(name)}


def _steps(columns: Mapping[str, str], contract: Contract) -> tuple[Step, ...]:
    schema = ",".join(f"{quoted(name)}:{kind}" for name, kind in columns.items())
    try:
        return evolve(f"struct<{schema}>", contract).steps
    except ValueError:
        return ()  # a type that contracts cannot name


def _after(columns: Mapping[str, str], steps: tuple[Step, ...]) -> dict[str, str]:
    found = dict(columns)
    for step in steps:
        name = step.path[0]
        if step.action == "rename" and len(step.path) == 1 and step.name:
            found = {step.name if one == name else one: kind for one, kind in found.items()}
        elif step.action in ("add", "widen") and len(step.path) == 1 and step.type:
            found[name] = step.type
        elif step.action != "relax":
            found[name] = f"{found.get(name, '')}+{step}"  # inside of it: another type, whichever
    return found
