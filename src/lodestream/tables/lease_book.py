"""Leases as properties of a small table: every catalog keeps those, and commits them in one step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lodestream.tables.jvm import catalog_errors, causes, says_no_such_table
from lodestream.tables.lake import Lake
from lodestream.tables.lease import PREFIX, TABLE, Conflict, Holder, LeaseBook, pages_of


class IcebergLeaseBook(LeaseBook):
    def __init__(self, lake: Lake, *, settle: float = 0.0) -> None:
        self._lake = lake
        self.settle = settle
        self._operations: Any = None
        self._base: Any = None

    def read(self) -> dict[str, Holder]:
        with catalog_errors(f"reading {TABLE}"):
            try:
                self._base = self._open().refresh()
            except Exception as error:
                if not says_no_such_table(error):
                    raise
                self._operations = None  # somebody dropped it: it is made anew
                self._base = self._open().refresh()
            return pages_of(dict(self._base.properties()))

    def _open(self) -> Any:
        if self._operations is None:
            self._operations = self._lake.open(TABLE, "note STRING").table.operations()
        return self._operations

    def write(self, changes: Mapping[str, Holder | None]) -> None:
        jvm: Any = self._lake.spark._jvm
        written, removed = jvm.java.util.HashMap(), jvm.java.util.HashSet()
        for name, holder in changes.items():
            if holder is None:
                removed.add(PREFIX + name)
            else:
                written.put(PREFIX + name, holder.to_json())
        with catalog_errors(f"writing {TABLE}"):
            metadata = jvm.org.apache.iceberg.TableMetadata.buildFrom(self._base)
            try:
                self._operations.commit(self._base, metadata.setProperties(written).removeProperties(removed).build())
            except Exception as error:
                if any(name.endswith(".CommitFailedException") for name, _ in causes(error)):
                    raise Conflict(f"{TABLE} was changed meanwhile") from error
                raise
