"""Files that were edited since a run began: contracts of Silver are applied at once, the rest when it is restarted."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from lodestream.engine.contract_files import contract_files
from lodestream.observe import DefinitionChanged, DefinitionRestored, Event, EventLog
from lodestream.pipeline import Table
from lodestream.planning.project import Project

FIX = "restart `lode run` to apply it"
_OF_CONTRACT = f"{FIX}; a table that is blocked takes it by itself"


class DefinitionWatch:
    """Tells of each edited file once, and once more when it is as it was. A look costs a `stat` a file."""

    def __init__(self, project: Project) -> None:
        self._root = project.config.root
        self._tables = _files(project)
        self._began = {file: _digest(file) for file in self._tables}
        self._stats = {file: _stat(file) for file in self._tables}
        self._changed: set[Path] = set()

    def look(self, events: EventLog) -> None:
        for file, tables in self._tables.items():
            stat = _stat(file)
            if stat is None or stat == self._stats[file]:
                continue  # an editor may be replacing it
            self._stats[file] = stat
            differs = _digest(file) != self._began[file]
            if differs == (file in self._changed):
                continue
            self._changed ^= {file}
            told = DefinitionChanged if differs else DefinitionRestored
            table = tables[0] if len(tables) == 1 else None
            events.emit(told(table, file=self._shown(file), tables=tables, fix=_fix(file) if differs else None))

    def _shown(self, file: Path) -> str:
        return str(file.relative_to(self._root)) if file.is_relative_to(self._root) else str(file)


def _fix(file: Path) -> str:
    return FIX if file.suffix in (".sql", ".py") else _OF_CONTRACT


def changed_since_start(events: Iterable[Event]) -> dict[str, tuple[str, ...]]:
    """Per table, the files of its definition that were edited since the run began, from that run's events."""
    found: dict[str, dict[str, None]] = {}
    for event in events:
        if not isinstance(event, DefinitionChanged | DefinitionRestored):
            continue
        for table in event.tables:
            files = found.setdefault(table, {})
            if isinstance(event, DefinitionChanged):
                files[event.file] = None
            else:
                files.pop(event.file, None)
    return {table: tuple(files) for table, files in found.items() if files}


def _files(project: Project) -> dict[Path, tuple[str, ...]]:
    """Which tables each file is about; the project's own modules may be about any."""
    found: dict[Path, tuple[str, ...]] = {}
    for table in project.graph:
        for file in _own(table):
            found[file] = (*found.get(file, ()), table.name)
    everything = tuple(table.name for table in project.graph)
    return {**found, **dict.fromkeys(_modules(project), everything)}


def _own(table: Table) -> list[Path]:
    live = table.tier == "silver" and not table.is_reference  # its contract is read again while it runs
    return [*([table.sql_path] if table.sql_path else []), *([] if live else contract_files(table))]


def _modules(project: Project) -> list[Path]:
    root, state = project.config.root, project.config.state_dir
    files = {Path(table.location.file) for table in project.graph} | {root / project.config.pipeline}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.endswith(".py") and _is_own(Path(file), root, state):
            files.add(Path(file))
    return sorted(file for file in files if file.is_file())


def _is_own(file: Path, root: Path, state: Path) -> bool:
    if not file.is_relative_to(root) or file.is_relative_to(state):
        return False
    return not any(part.startswith(".") or part == "site-packages" for part in file.relative_to(root).parts)


def _digest(file: Path) -> str | None:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return None


def _stat(file: Path) -> Mapping[str, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return {"modified": found.st_mtime_ns, "size": found.st_size, "node": found.st_ino}
