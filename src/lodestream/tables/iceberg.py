"""An Iceberg table, through the Java API that Spark has loaded anyway."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from lodestream.errors import OutcomeUnknown, TableGone
from lodestream.failpoints import reach
from lodestream.tables.hidden import hidden_fields, hidden_of, holds_hidden, with_hidden
from lodestream.tables.jvm import catalog_errors, causes, members, says_no_such_table
from lodestream.tables.notes import SCHEMA, SPEC
from lodestream.tables.snapshot import Snapshot
from lodestream.tables.store import MAIN, Refused, TableStore

# Snapshots never change, so one crossing into the JVM per snapshot and process is enough.
_CACHE_SIZE = 4096


class IcebergStore(TableStore):
    def __init__(self, spark: SparkSession, catalog: str, name: str) -> None:
        self._spark = spark
        self.name = name
        self.identifier = f"{catalog}.{name}"
        self._seen: dict[int, Snapshot] = {}
        self._parser: Any = None
        self.table: Any = None

    def refresh(self) -> None:
        with catalog_errors(f"loading {self.name}"):
            try:
                self._load()
            except Exception as error:
                if says_no_such_table(error):
                    raise _gone(self.name) from error
                raise

    def _load(self) -> None:
        if self.table is None:
            loader = self._jvm.org.apache.iceberg.spark.Spark3Util
            self.table = loader.loadIcebergTable(self._spark._jsparkSession, self.identifier)
        else:
            self.table.refresh()

    def ref(self, name: str) -> Snapshot | None:
        found = self.table.snapshot(name)
        return None if found is None else self._remember(found)

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        # What is known of a snapshot never changes, but whether the table still has it does.
        found = self.table.snapshot(_long(snapshot_id, self._jvm))
        return None if found is None else self._remember(found, snapshot_id)

    def recalled(self, snapshot_id: int) -> Snapshot | None:
        return self._seen.get(snapshot_id) or self.snapshot(snapshot_id)

    def branches(self) -> list[str]:
        refs = self.table.refs()
        return [name for name in members(refs.keySet()) if name != MAIN and refs.get(name).isBranch()]

    def point(self, branch: str, snapshot_id: int) -> None:
        with catalog_errors(f"pointing {branch} of {self.name}"):
            manage = self.table.manageSnapshots()
            set_branch = manage.createBranch if self.table.snapshot(branch) is None else manage.replaceBranch
            set_branch(branch, _long(snapshot_id, self._jvm)).commit()

    def drop(self, branch: str) -> None:
        with catalog_errors(f"dropping {branch} of {self.name}"):
            if self.table.snapshot(branch) is not None:
                self.table.manageSnapshots().removeBranch(branch).commit()

    def main_version(self) -> str:
        moves = self.table.history()
        count = moves.size()
        if count == 0:
            return ""
        last = moves.get(count - 1)
        return f"{last.snapshotId()}@{last.timestampMillis()}"

    def fast_forward(self, branch: str, upto: int, main_version: str) -> None:
        reach("publish.swap", self.name)
        try:
            # This reads the table anew, and the commit fails when anything has changed since.
            manage = self.table.manageSnapshots()
            staged = self.ref(branch)
            if self.main_version() != main_version or staged is None or staged.id != upto:
                raise Refused(
                    f"main of {self.name} or {branch} moved",
                    why=f"main is at {self.main_version()}, not {main_version}",
                )
            if SCHEMA in staged.summary:
                self._show_reshaped(staged)
            else:
                manage.fastForwardBranch(MAIN, branch).commit()
        except Refused:
            raise
        except Exception as error:
            raise _refusal(self.name, error) from error
        reach("publish.swapped", self.name)

    def rollback(self, snapshot_id: int) -> None:
        with catalog_errors(f"rolling back {self.name}"):
            self.table.manageSnapshots().rollbackTo(_long(snapshot_id, self._jvm)).commit()

    def commit_empty(self, branch: str, properties: Mapping[str, str]) -> None:
        with catalog_errors(f"committing to {self.name}"), with_hidden(self._jvm, self.table) as changing:
            append = changing.begin.newFastAppend().toBranch(branch)
            for key, value in properties.items():
                append = append.set(key, value)
            append.commit()

    def _show_reshaped(self, staged: Snapshot) -> None:
        """`main` and the current schema move in one commit: until then readers see old rows in old columns."""
        iceberg, operations = self._jvm.org.apache.iceberg, self.table.operations()
        base = operations.current()
        main = iceberg.SnapshotRef.builderFrom(base.ref(MAIN), _long(staged.id, self._jvm)).build()
        shown = iceberg.TableMetadata.buildFrom(base).setCurrentSchema(int(staged.summary[SCHEMA])).setRef(MAIN, main)
        if SPEC in staged.summary:
            shown = shown.setDefaultPartitionSpec(int(staged.summary[SPEC]))
        shown = shown.setProperties(hidden_of(self._jvm, base.schemasById().get(staged.schema_id)))
        operations.commit(base, shown.build())

    def field_ids(self, schema_id: int | None) -> dict[str, int]:
        """The numbers of the columns of a schema, or of the current one."""
        schema = None if schema_id is None else self.table.schemas().get(schema_id)
        columns = (schema or self.table.schema()).columns()
        return {column.name(): int(column.fieldId()) for column in columns}

    def holds_hidden(self, snapshot: Snapshot) -> bool:
        """Whether rows that are read as of this snapshot come with the hidden columns of the table."""
        return holds_hidden(self.table, snapshot.schema_id)

    @property
    def hidden(self) -> list[str]:
        return [str(one["name"]) for one in hidden_fields(self.table)]

    @property
    def uuid(self) -> str:
        return str(self.table.uuid())

    @property
    def _jvm(self) -> Any:
        return self._spark._jvm

    def _remember(self, found: Any, snapshot_id: int | None = None) -> Snapshot:
        known = self._seen.get(found.snapshotId() if snapshot_id is None else snapshot_id)
        if known is not None:
            return known
        if self._parser is None:
            # Looked up once: each package on the way to a class is a question to the JVM of its own.
            self._parser = self._jvm.org.apache.iceberg.SnapshotParser
        parsed = _parse(self._parser.toJson(found))
        if len(self._seen) >= _CACHE_SIZE:
            self._seen.clear()
        self._seen[parsed.id] = parsed
        return parsed


def _parse(text: str) -> Snapshot:
    raw = json.loads(text)
    summary = dict(raw.get("summary", {}))
    return Snapshot(
        id=raw["snapshot-id"],
        parent=raw.get("parent-snapshot-id"),
        operation=summary.pop("operation", "append"),
        timestamp_ms=raw["timestamp-ms"],
        summary=summary,
        schema_id=raw.get("schema-id"),
    )


def _long(value: int, jvm: Any) -> Any:
    """A Java long: py4j would send a small id as an int and miss the overload."""
    return jvm.java.lang.Long.valueOf(value) if -(2**31) <= value < 2**31 else value


def _gone(table: str) -> TableGone:
    return TableGone(
        f"table {table} is gone",
        why="the catalog knows no table of that name: it was dropped, or the catalog is not the one we began with",
        fix="restore it; or run again: it is made anew from its inputs, and tables that read it must be rebuilt",
    )


def _refusal(table: str, error: Exception) -> Refused | OutcomeUnknown:
    chain = causes(error)
    text = "; ".join(f"{name}: {message}" for name, message in chain)
    if "is not an ancestor of" in text or "CommitFailedException" in text:
        return Refused(f"main of {table} moved", why=text)
    # Anything else may have happened before or after the swap: the caller looks.
    return OutcomeUnknown(f"publishing {table}: the answer was lost", why=text)
