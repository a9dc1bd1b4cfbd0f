"""The tables of one catalog: create, find, load."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from lodestream.errors import CatalogUnavailable
from lodestream.names import in_files_only
from lodestream.tables.hidden import hide, with_hidden
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.jvm import catalog_errors, members, static
from lodestream.tables.notes import CREATED
from lodestream.tables.store import MAIN

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
        with catalog_errors(f"creating {name}"):
            if hide(self._jvm, store.table):  # also of a table whose maker was killed before it came to this
                store.refresh()
        if store.head() is None:
            store.commit_empty(MAIN, CREATED)
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
        options = {"fanout-enabled": "false"} if clustered else {}
        with catalog_errors(f"writing {name}"):
            if any(map(in_files_only, rows.columns)):
                self._write_whole(name, rows, branch, properties, "append", options)
            else:
                self._writer(name, rows, branch, properties).options(**options).append()

    def overwrite(self, name: str, rows: DataFrame, branch: str, properties: Mapping[str, str]) -> None:
        """Replace every row in one atomic step: readers never see an empty table."""
        with catalog_errors(f"overwriting {name}"):
            if any(map(in_files_only, rows.columns)):
                self._write_whole(name, rows, branch, properties, "overwrite")
            else:
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

    def _write_whole(
        self,
        name: str,
        rows: DataFrame,
        branch: str,
        properties: Mapping[str, str],
        how: Literal["append", "overwrite"],
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Rows with their hidden columns. Spark writes files alone: its own commits know the declared columns only."""
        with with_hidden(self._jvm, self.store(name).table) as changing:
            files = written_files(self.spark, changing.table, rows, options)
            if how == "append":
                commit = changing.begin.newFastAppend()
            else:
                everything = self._jvm.org.apache.iceberg.expressions.Expressions.alwaysTrue()
                commit = changing.begin.newOverwrite().overwriteByRowFilter(everything)
            for file in files:
                (commit.appendFile if how == "append" else commit.addFile)(file)
            finish(commit, branch, properties)

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm

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


def finish(commit: Any, branch: str, properties: Mapping[str, str]) -> None:
    for key, value in properties.items():
        commit.set(key, value)
    commit.toBranch(branch).commit()


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def written_files(
    spark: SparkSession, table: Any, rows: DataFrame, options: Mapping[str, str] | None = None
) -> list[Any]:
    """Data files that no snapshot has yet: as compaction does it, Spark writes and leaves the commit to us."""
    jvm: Any = spark._jvm
    iceberg = jvm.org.apache.iceberg.spark
    cache, coordinator = (
        static(spark, iceberg.SparkTableCache, "get"),
        static(spark, iceberg.FileRewriteCoordinator, "get"),
    )
    group = str(uuid.uuid4())
    cache.add(group, table)
    try:
        # Iceberg adds a catalog of its own to the thread's active session, and Spark looks for it there: in a thread
        # that has none, in no session at all.
        jvm.org.apache.spark.sql.SparkSession.setActiveSession(spark._jsparkSession)
        rows.write.format("iceberg").options(**(options or {})).mode("append").save(group)
        return members(coordinator.fetchNewFiles(table, group))
    finally:
        cache.remove(group)
        coordinator.clearRewrite(table, group)
