"""Swap rows at known locations for new ones, in one commit: nothing of the table is read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col

from lodestream.tables.hidden import with_hidden
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.jvm import catalog_errors
from lodestream.tables.lake import Lake, finish, written_files
from lodestream.tables.rewrite import branch_head, rewrite_files

RowLocation = tuple[str, int]
_FILE, _POS = "_lode_x_file", "_lode_x_pos"
# From this format version on, deletes are bitmaps that must take over what earlier ones hold: files are rewritten.
_BITMAPS = 3


class _Home(NamedTuple):
    """The partition that a data file lies in."""

    spec: int
    partition: Any
    name: str

    @classmethod
    def of(cls, file: Any) -> _Home:
        partition = file.partition()
        return cls(file.specId(), partition, str(partition))


class Swapper:
    """Remembers in which partition each file lies: files never move, so a look at the table is rarely needed."""

    def __init__(self, lake: Lake, store: IcebergStore) -> None:
        self._lake = lake
        self._store = store
        self._homes: dict[str, _Home] = {}

    @property
    def able(self) -> bool:
        return int(self._jvm.org.apache.iceberg.TableUtil.formatVersion(self._store.table)) < _BITMAPS

    def swap(
        self, rows: DataFrame | None, locations: Iterable[RowLocation], branch: str, properties: Mapping[str, str]
    ) -> None:
        """Take away the rows at `locations`, as of the branch's head, and add `rows`."""
        store = self._store
        with catalog_errors(f"applying changes to {store.name}"), with_hidden(self._jvm, store.table) as changing:
            delta = changing.begin.newRowDelta()
            for file in written_files(self._lake.spark, changing.table, rows) if rows is not None else ():
                self._homes[file.location()] = _Home.of(file)
                delta.addRows(file)
            for file in self._deletes(store.table, branch, locations):
                delta.addDeletes(file)
            finish(delta, branch, properties)

    def replace(
        self,
        stored: DataFrame,
        touched: DataFrame,
        same: Column,
        rows: DataFrame,
        branch: str,
        properties: Mapping[str, str],
    ) -> None:
        """Take away the rows of `stored` that a row of `touched` says are the `same`, and add `rows`.

        `stored` are rows of the branch's head, some or all of them; the columns of `touched` have names of their own.
        """
        located = stored.select("*", col("_file").alias(_FILE), col("_pos").alias(_POS))
        met = located.join(touched, same, "left_semi")
        if self.able:
            locations = [(str(one[_FILE]), int(one[_POS])) for one in met.select(_FILE, _POS).collect()]
            self.swap(rows, locations, branch, properties)
            return
        files = [str(one[_FILE]) for one in met.select(_FILE).distinct().collect()]
        whole = self._lake.whole(self._store.name, branch_head(self._store, branch)).select(
            "*", col("_file").alias(_FILE)
        )
        kept = whole.where(col(_FILE).isin(files)).join(touched, same, "left_anti").drop(_FILE)
        rewrite_files(self._lake, self._store, files, kept.unionByName(rows), branch, properties)

    def _deletes(self, table: Any, branch: str, locations: Iterable[RowLocation]) -> list[Any]:
        """One delete file for each partition, not for each data file: spread changes touch many of these."""
        ordered = sorted(locations)
        self._learn(table, branch, {file for file, _ in ordered})
        homes: dict[tuple[int, str], _Home] = {}
        inside: dict[tuple[int, str], list[RowLocation]] = defaultdict(list)
        for location in ordered:
            home = self._homes[location[0]]
            homes[home.spec, home.name] = home
            inside[home.spec, home.name].append(location)
        return [self._delete_file(table, homes[one], some) for one, some in inside.items()]

    def _learn(self, table: Any, branch: str, files: set[str]) -> None:
        if files <= self._homes.keys():
            return
        tasks = table.newScan().useRef(branch).planFiles()
        try:
            for task in tasks.iterator():
                self._homes[task.file().location()] = _Home.of(task.file())
        finally:
            tasks.close()

    def _delete_file(self, table: Any, home: _Home, locations: Iterable[RowLocation]) -> Any:
        iceberg = self._jvm.org.apache.iceberg
        spec, parquet = table.specs().get(home.spec), iceberg.FileFormat.PARQUET
        names = iceberg.io.OutputFileFactory.builderFor(table, 0, 0).format(parquet).suffix("deletes").build()
        factory = iceberg.data.GenericFileWriterFactory.Builder(table).deleteFileFormat(parquet).build()
        writer = factory.newPositionDeleteWriter(names.newOutputFile(spec, home.partition), spec, home.partition)
        delete = iceberg.deletes.PositionDelete.create()
        try:
            for file, position in locations:
                writer.write(delete.set(file, position))
        finally:
            writer.close()
        return writer.toDeleteFile()

    @property
    def _jvm(self) -> Any:
        return self._lake.spark._jvm
