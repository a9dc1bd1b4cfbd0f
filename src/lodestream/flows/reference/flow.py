"""Reference data: a file beside the pipeline, loaded whole whenever its content changes, with its history if asked."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from lodestream import clock
from lodestream.contracts import Contract
from lodestream.errors import DeclarationError, LodeError
from lodestream.flows.flow import Batch, Flow, Span
from lodestream.flows.keyed.history_rows import CURRENT, FROM, TO
from lodestream.flows.reference.check import checked, unreadable
from lodestream.flows.reference.history import MOMENTS, as_dated, as_loaded, history_ddl, last_of_each
from lodestream.flows.shape import ddl_of
from lodestream.pipeline import Table
from lodestream.sources.reference import ReferenceFile
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.jvm import translate
from lodestream.tables.lake import Lake

# Spark's names for a file that is not of its format.
_UNREAD = ("CANNOT_READ_FILE", "FAILED_READ_FILE", "MALFORMED_RECORD")
# What Spark's analysis says of the catalog, of which the file knows nothing.
_OF_CATALOG = (
    "CATALOG_NOT_FOUND",
    "SCHEMA_ALREADY_EXISTS",
    "SCHEMA_NOT_FOUND",
    "TABLE_OR_VIEW_ALREADY_EXISTS",
    "TABLE_OR_VIEW_NOT_FOUND",
)


class ReferenceFlow(Flow):
    def __init__(self, lake: Lake, table: Table, run: str, source: ReferenceFile, contract: Contract | None) -> None:
        super().__init__(lake, table, run, [source])
        self._file = source
        self._contract = contract

    def create(self) -> IcebergStore:
        ddl = self._contract.ddl() if self._contract else ddl_of(self._file.frame().schema)
        moment = self._moment()
        ddl = f"{ddl}, {history_ddl(moment)}" if self.table.history else ddl
        store = self.lake.open(self.name, ddl, properties=dict(self.table.properties), comment=self.table.description)
        if self.table.history:
            self._fits(moment)
        return store

    def make(self, span: Span) -> Batch:
        rows = self._file.read(span.since[self._file.name], span.to[self._file.name])
        sequence = self.table.sequence_by
        rows = checked(self.name, self._file.path.name, rows, self._contract, self._keys, sequence)
        stored = self.lake.whole(self.name) if span.previous is not None else None
        if self.table.history and sequence:
            rows = as_dated(rows, stored, self._keys, sequence)
        elif self.table.history:
            rows = as_loaded(rows, stored, self._keys, clock.now())
        else:
            rows = last_of_each(rows, self._keys, sequence)
        return _Reload(self, rows, span.rows)

    def explain(self, error: Exception) -> LodeError | None:
        """Columns that are gone, another type of one, a file that is none: told as what is wrong with the file."""
        known = super().explain(error)
        if known is not None or isinstance(error, LodeError):
            return known
        # A catalog that does not answer reaches us as an error of analysis, too.
        return translate(error, self.name) or (
            unreadable(self.name, self._file.path.name, error) if _is_of_file(error) else None
        )

    @property
    def _keys(self) -> tuple[str, ...]:
        return self.table.keys or (self._contract.keys if self._contract else ())

    def _moment(self) -> str:
        """The type of `valid_from`: that of the file's own dates, where it has some."""
        kinds = {field.name: field.dataType.simpleString() for field in self._file.frame().schema}
        missing = [name for name in (*self._keys, *self.table.sequence_by) if name not in kinds]
        if missing:
            raise DeclarationError(
                f"{self.name}: {self._file.path.name} has no column {', '.join(missing)}",
                why=f"its columns: {', '.join(kinds)}",
                fix="name columns of the file in keys= and sequence_by=",
            )
        if not self.table.sequence_by or not self.table.history:
            return "timestamp"
        first = self.table.sequence_by[0]
        if kinds[first] not in MOMENTS:
            raise DeclarationError(
                f"{self.name} keeps a history by {first}, which is {kinds[first]}",
                why="a version is valid from a moment on, so the first of sequence_by is a date or a timestamp",
                fix=f'declare it: schema="..., {first} date"',
            )
        return kinds[first]

    def _fits(self, moment: str) -> None:
        held = {field.name: field.dataType.simpleString() for field in self.lake.whole(self.name).schema}
        if held.get(FROM) != moment:
            raise DeclarationError(
                f"{self.name} was made with another history: its {FROM} is {held.get(FROM, 'missing')}, not {moment}",
                why=f"{FROM}, {TO} and {CURRENT} came with history= and sequence_by= as they were then",
                fix=f"drop {self.name}: it is made again from its file",
            )


def _is_of_file(error: Exception) -> bool:
    if isinstance(error, AnalysisException):
        return not str(error.getCondition() or "").startswith(_OF_CATALOG)
    return any(said in str(error) for said in _UNREAD)


class _Reload(Batch):
    def __init__(self, flow: ReferenceFlow, rows: DataFrame, read: int) -> None:
        self.counts = {"in": read}
        self._flow = flow
        self._rows = rows

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        self._flow.lake.overwrite(self._flow.name, self._rows, branch, properties)
