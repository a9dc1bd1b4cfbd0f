"""Look at tables without a JVM: PyIceberg reads the same catalog."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.types import ListType, MapType, StructType

from lodestream.config import Config
from lodestream.errors import CatalogUnavailable
from lodestream.runtime.catalogs import catalog_file, python_settings
from lodestream.tables.history import History
from lodestream.tables.snapshot import Snapshot
from lodestream.tables.store import MAIN

# What SQLite says of a catalog that Java is creating: the table comes first, a column of it a moment later.
_BEING_MADE = ("no such table: iceberg_tables", "no such column: iceberg_tables.iceberg_type")
_SPARK_NAMES = {"long": "bigint", "timestamptz": "timestamp", "timestamp": "timestamp_ntz", "uuid": "string"}


class Inspector:
    """Read-only: heads, histories and rows, for `lode status` and its kin."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def look(self, name: str) -> TableView | None:
        """The table as it is now, or None when it does not exist."""
        file = catalog_file(self._config)
        if file and not file.exists():
            return None  # nothing has run yet, and looking must not create the catalog
        try:
            return TableView(name, self._catalog.load_table(name))
        except NoSuchTableError:
            return None
        except Exception as error:
            if any(said in str(error) for said in _BEING_MADE):
                return None  # a first run is about to make it
            raise CatalogUnavailable(
                f"the catalog at {self._shown} does not answer",
                why=f"{type(error).__name__}: {error}".splitlines()[0],
                fix="check [profiles.*.catalog] in lode.toml; `lode doctor` looks at each part",
            ) from error

    @cached_property
    def _catalog(self) -> Catalog:
        return python_catalog(self._config)

    @property
    def _shown(self) -> str:
        return self._config.catalog_uri().rpartition("@")[2]


def python_catalog(config: Config) -> Catalog:
    """The project's catalog for PyIceberg."""
    return load_catalog(config.catalog.name, **{"init_catalog_tables": "false", **python_settings(config)})


class TableView(History):
    """One table's metadata, as it was when looked at."""

    def __init__(self, name: str, table: Any) -> None:
        self.name = name
        self.table = table

    @property
    def uuid(self) -> str:
        return str(self.table.metadata.table_uuid)

    @property
    def properties(self) -> Mapping[str, str]:
        return dict(self.table.properties)

    def head(self) -> Snapshot | None:
        ref = self.table.metadata.refs.get(MAIN)
        return self.snapshot(ref.snapshot_id) if ref else None

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        return self._snapshots.get(snapshot_id)

    def columns(self) -> dict[str, str]:
        """The columns with their types as Spark spells them."""
        return {field.name: spark_type(field.field_type) for field in self.table.schema().fields}

    def main_version(self) -> str:
        """Where `main` is, and since when, as the publish protocol says it."""
        moves = self.table.metadata.snapshot_log
        return f"{moves[-1].snapshot_id}@{moves[-1].timestamp_ms}" if moves else ""

    @cached_property
    def _snapshots(self) -> dict[int, Snapshot]:
        return {raw.snapshot_id: _snapshot(raw) for raw in self.table.metadata.snapshots}


def _snapshot(raw: Any) -> Snapshot:
    summary = dict(raw.summary.additional_properties) if raw.summary else {}
    operation = raw.summary.operation.value if raw.summary else "append"
    return Snapshot(raw.snapshot_id, raw.parent_snapshot_id, operation, raw.timestamp_ms, summary)


def spark_type(kind: Any) -> str:
    """An Iceberg type as Spark spells it."""
    if isinstance(kind, StructType):
        return f"struct<{','.join(f'{one.name}:{spark_type(one.field_type)}' for one in kind.fields)}>"
    if isinstance(kind, ListType):
        return f"array<{spark_type(kind.element_type)}>"
    if isinstance(kind, MapType):
        return f"map<{spark_type(kind.key_type)},{spark_type(kind.value_type)}>"
    plain = str(kind).replace(" ", "")
    return "binary" if plain.startswith("fixed") else _SPARK_NAMES.get(plain, plain)
