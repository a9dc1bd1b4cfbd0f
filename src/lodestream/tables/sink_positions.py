"""Where each sink is: properties of a small table, which every catalog keeps and commits in one step. No JVM.

Dropping the table loses no change: sinks that do not know their own position are given everything again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StringType

from lodestream.config import Config
from lodestream.errors import CatalogUnavailable
from lodestream.tables.inspect import python_catalog
from lodestream.tables.sink_notes import PREFIX, TABLE

_TRIES = 10
_KEPT = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "5"}


class SinkPositions:
    """Shared by the sinks of a run; other runs may write about other tables at the same time."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.Lock()

    def read(self, sink: str) -> str | None:
        with self._lock:
            table = self._known()
        properties: Mapping[str, str] = table.properties if table is not None else {}
        return properties.get(PREFIX + sink)

    def remember(self, sink: str, position: str) -> None:
        with self._lock:
            for _ in range(_TRIES):
                try:
                    with self._open().transaction() as change:
                        change.set_properties({PREFIX + sink: position})
                except CommitFailedException:
                    continue  # another run wrote about another sink
                except Exception as error:
                    raise CatalogUnavailable(
                        f"the position of {sink} could not be written to {TABLE}",
                        why=f"{type(error).__name__}: {error}".splitlines()[0],
                        fix="it is tried again; until then a crash makes the sink be given the last changes twice",
                    ) from error
                return
        raise CatalogUnavailable(f"{TABLE} changed under {_TRIES} attempts to write the position of {sink}")

    def _open(self) -> Any:
        table = self._known()
        return table if table is not None else self._make()

    def _known(self) -> Any | None:
        """Through one catalog: each has connections of its own, which it does not give back."""
        try:
            return self._catalog.load_table(TABLE)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None

    def _make(self) -> Any:
        with suppress(NamespaceAlreadyExistsError):
            self._catalog.create_namespace(TABLE.partition(".")[0])
        try:
            return self._catalog.create_table(TABLE, Schema(NestedField(1, "note", StringType())), properties=_KEPT)
        except TableAlreadyExistsError:
            return self._catalog.load_table(TABLE)

    @cached_property
    def _catalog(self) -> Any:
        return python_catalog(self._config)
