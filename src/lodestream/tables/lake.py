"""The tables of one catalog: create, find, load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from lodestream.errors import CatalogUnavailable
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.jvm import catalog_errors

# Small commits arrive every second: no shuffle before a write, and metadata that does not grow without end.
_DEFAULTS = {
    "format-version": "2",
    "write.distribution-mode": "none",
    "write.spark.fanout.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "write.delete.isolation-level": "serializable",
    "write.update.isolation-level": "serializable",
    "write.merge.isolation-level": "serializable",
    "commit.retry.num-retries": "10",
    # Every plan and every commit reads the list of manifests: keep it short, and what a merge rewrites small.
    "commit.manifest.min-count-to-merge": "16",
    "commit.manifest.target-size-bytes": "1048576",
}


_REWRITES = "spark.sql.catalog.default_rewrite_catalog"


class Lake:
    def __init__(self, spark: SparkSession, catalog: str) -> None:
        self.spark = spark
        self.catalog = catalog
        self._namespaces: set[str] = set()
        # Iceberg adds it to whichever session is active when files are first written without a commit; then every
        # other session does not find it.
        with suppress(Exception):
            spark.conf.set(_REWRITES, "org.apache.iceberg.spark.SparkRewriteTableCatalog")
        # Spark builds a session's catalog when it is first asked for, with the settings of whichever session is active
        # then: ask now, as this one. A catalog that is down is reported by the first call that needs it.
        with suppress(Exception):
            spark.sql(f"USE `{catalog}`")

    def identifier(self, name: str) -> str:
        return ".".join(f"`{part}`" for part in (self.catalog, *name.split(".")))

    def exists(self, name: str) -> bool:
        with catalog_errors(f"looking for {name}"):
            return bool(self.spark.catalog.tableExists(self.identifier(name)))

    def store(self, name: str) -> IcebergStore:
        """The table, loaded now; raises when it does not exist."""
        store = IcebergStore(self.spark, self.catalog, name)
        store.refresh()
        return store

    def open(
        self,
        name: str,
        ddl: str,
        *,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> IcebergStore:
        """The table, created when missing, with at least one (empty) snapshot on `main`.

        The empty first snapshot makes the first batch a race like every other: a fast-forward of `main`.
        """
        if not self.exists(name):
            self._create(name, ddl, partition_by, properties or {}, comment)
        store = self.store(name)
        if store.head() is None:
            with catalog_errors(f"creating {name}"):
                store.table.newFastAppend().set("lode.created", "true").commit()
            store.refresh()
            if store.head() is None:
                raise CatalogUnavailable(
                    f"{name} was created and has no snapshot",
                    why="the catalog said that its first, empty one is committed, and the table does not show it",
                )
        return store

    def append(
        self, name: str, rows: DataFrame, branch: str, properties: Mapping[str, str], *, clustered: bool = False
    ) -> None:
        """`clustered` rows come partition by partition: then only one file is open at a time."""
        with catalog_errors(f"writing {name}"):
            writer = self._writer(name, rows, branch, properties)
            (writer.option("fanout-enabled", "false") if clustered else writer).append()

    def overwrite(self, name: str, rows: DataFrame, branch: str, properties: Mapping[str, str]) -> None:
        """Replace every row in one atomic step: readers never see an empty table."""
        with catalog_errors(f"overwriting {name}"):
            self._writer(name, rows, branch, properties).overwrite(lit(True))

    def whole(self, name: str, snapshot: int | None = None, options: Mapping[str, str] | None = None) -> DataFrame:
        reader = self.spark.read.options(**(options or {}))
        if snapshot is not None:
            reader = reader.option("versionAsOf", str(snapshot))
        return reader.table(self.identifier(name))

    def appended(self, name: str, after: int, upto: int) -> DataFrame:
        """Rows added after one snapshot up to and including another."""
        reader = self.spark.read.option("start-snapshot-id", str(after)).option("end-snapshot-id", str(upto))
        return reader.table(self.identifier(name))

    def appended_sql(self, name: str, after: int, upto: int) -> str:
        """`appended`, for a FROM clause."""
        return f"{self.identifier(name)} WITH ('start-snapshot-id'='{after}', 'end-snapshot-id'='{upto}')"

    def _writer(self, name: str, rows: DataFrame, branch: str, properties: Mapping[str, str]):  # type: ignore[no-untyped-def]
        writer = rows.writeTo(f"{self.identifier(name)}.`branch_{branch}`")
        for key, value in properties.items():
            writer = writer.option(f"snapshot-property.{key}", value)
        return writer

    def _create(
        self,
        name: str,
        ddl: str,
        partition_by: Sequence[str],
        properties: Mapping[str, str],
        comment: str | None,
    ) -> None:
        with catalog_errors(f"creating {name}"):
            self._ensure_namespace(name.rpartition(".")[0])
            clauses = [f"CREATE TABLE IF NOT EXISTS {self.identifier(name)} ({ddl}) USING iceberg"]
            if partition_by:
                clauses.append(f"PARTITIONED BY ({', '.join(partition_by)})")
            if comment:
                clauses.append(f"COMMENT {_literal(comment)}")
            settings = ", ".join(f"{_literal(k)}={_literal(v)}" for k, v in {**_DEFAULTS, **properties}.items())
            clauses.append(f"TBLPROPERTIES ({settings})")
            self.spark.sql(" ".join(clauses))

    def _ensure_namespace(self, namespace: str) -> None:
        if namespace not in self._namespaces:
            self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self.identifier(namespace)}")
            self._namespaces.add(namespace)


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
