"""Many tables at a glance: one query to the catalog, then each table's metadata file as plain JSON.

PyIceberg takes a second to import and builds an object for every snapshot; a status needs the newest few of each table.
Catalogs and storages that need a client of their own are asked through PyIceberg, several tables at a time.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lodestream.config import Config
from lodestream.errors import CatalogUnavailable
from lodestream.runtime.catalogs import catalog_file
from lodestream.tables.history import History
from lodestream.tables.snapshot import Snapshot
from lodestream.tables.store import MAIN

_AT_ONCE = 8
_BUSY_SECONDS = 5.0
_QUERY = "SELECT table_namespace || '.' || table_name, metadata_location FROM iceberg_tables WHERE catalog_name = ?"


def look_at(config: Config, names: Sequence[str]) -> dict[str, History]:
    """The tables among `names` that exist."""
    file = catalog_file(config)
    if file is None:
        return _by_client(config, names)
    found = _locations(file, config.catalog.name)
    here = {name: path for name in names if name in found and (path := _local(found[name])) is not None}
    elsewhere = [name for name in names if name in found and name not in here]
    tables: dict[str, History] = {name: MetadataView(name, _read(path, name)) for name, path in here.items()}
    return tables | _by_client(config, elsewhere)


class MetadataView(History):
    """A table by its metadata file."""

    def __init__(self, name: str, metadata: Mapping[str, Any]) -> None:
        self.name = name
        self._metadata = metadata
        self._raw = {one["snapshot-id"]: one for one in metadata.get("snapshots") or ()}

    @property
    def uuid(self) -> str:
        return str(self._metadata["table-uuid"])

    @property
    def properties(self) -> Mapping[str, str]:
        return dict(self._metadata.get("properties") or {})

    def head(self) -> Snapshot | None:
        ref = (self._metadata.get("refs") or {}).get(MAIN)
        return self.snapshot(ref["snapshot-id"]) if ref else None

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        raw = self._raw.get(snapshot_id)
        if raw is None:
            return None
        summary = dict(raw.get("summary") or {})
        operation = summary.pop("operation", "append")
        return Snapshot(snapshot_id, raw.get("parent-snapshot-id"), operation, raw["timestamp-ms"], summary)


def _by_client(config: Config, names: Sequence[str]) -> dict[str, History]:
    if not names:
        return {}
    from lodestream.tables.inspect import Inspector

    inspector = Inspector(config)
    first, *others = names  # one look makes the client; then it is shared
    tables = {first: inspector.look(first)}
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="lode-look") as pool:
        tables |= dict(zip(others, pool.map(inspector.look, others), strict=True))
    return {name: view for name, view in tables.items() if view is not None}


def _locations(file: Path, catalog: str) -> dict[str, str]:
    if not file.exists():
        return {}  # nothing has run yet, and looking must not create the catalog
    try:
        connection = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=_BUSY_SECONDS)
        try:
            return dict(connection.execute(_QUERY, (catalog,)).fetchall())
        finally:
            connection.close()
    except sqlite3.Error as error:
        if "no such table: iceberg_tables" in str(error):
            return {}  # a first run is about to make it
        raise _unavailable(str(file), error) from error


def _local(location: str) -> Path | None:
    """The file, if it is one of this machine. Locations are paths, not URLs: `#` and `%` stand for themselves."""
    scheme, found, rest = location.partition(":")
    if not found or "/" in scheme:
        return Path(location)
    return Path("/" + rest.lstrip("/")) if scheme == "file" else None


def _read(path: Path, name: str) -> Mapping[str, Any]:
    try:
        raw = path.read_bytes()
        found: Mapping[str, Any] = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
        return found
    except (OSError, ValueError) as error:
        raise _unavailable(f"{name}: {path}", error) from error


def _unavailable(place: str, error: Exception) -> CatalogUnavailable:
    return CatalogUnavailable(
        f"the catalog at {place} does not answer",
        why=f"{type(error).__name__}: {error}".splitlines()[0],
        fix="check [profiles.*.catalog] in lode.toml; `lode doctor` looks at each part",
    )
