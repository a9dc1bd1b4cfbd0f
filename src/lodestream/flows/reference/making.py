"""Reference data: a file beside the pipeline, loaded whole whenever its content changes, with its history if asked."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from lodestream import clock
from lodestream.contracts import Contract
from lodestream.errors import DeclarationError, LodeError
from lodestream.flows.batch import Batch, Span
from lodestream.flows.columns.shape import ddl_of
from lodestream.flows.context import Context
from lodestream.flows.parts import Home, Making
from lodestream.flows.promise import Promise
from lodestream.flows.reference.check import checked, unreadable
from lodestream.flows.reference.history import MOMENTS, as_dated, as_loaded, history_ddl, last_of_each
from lodestream.names import IS_CURRENT as CURRENT
from lodestream.names import VALID_FROM as FROM
from lodestream.names import VALID_TO as TO
from lodestream.sources.reference.file import ReferenceFile
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.jvm import translate

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


class ReferenceFileTable:
    """What a file, its contract and its declaration say together."""

    def __init__(self, context: Context, source: ReferenceFile, contract: Contract | None) -> None:
        self.lake, self.table, self.name = context.lake, context.table, context.name
        self.file = source
        self.contract = contract

    @property
    def keys(self) -> tuple[str, ...]:
        return self.table.keys or (self.contract.keys if self.contract else ())

    def moment(self) -> str:
        """The type of `valid_from`: that of the file's own dates, where it has some."""
        kinds = {field.name: field.dataType.simpleString() for field in self.file.frame().schema}
        missing = [name for name in (*self.keys, *self.table.sequence_by) if name not in kinds]
        if missing:
            raise DeclarationError(
                f"{self.name}: {self.file.path.name} has no column {', '.join(missing)}",
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

    def check_history(self, moment: str) -> None:
        held = {field.name: field.dataType.simpleString() for field in self.lake.whole(self.name).schema}
        if held.get(FROM) != moment:
            raise DeclarationError(
                f"{self.name} was made with another history: its {FROM} is {held.get(FROM, 'missing')}, not {moment}",
                why=f"{FROM}, {TO} and {CURRENT} came with history= and sequence_by= as they were then",
                fix=f"drop {self.name}: it is made again from its file",
            )


class ReferenceHome(Home):
    def __init__(self, reference: ReferenceFileTable, promise: Promise | None) -> None:
        self._reference = reference
        self._promise = promise

    def open(self, *, guest: bool = False) -> IcebergStore:
        reference, table, promise = self._reference, self._reference.table, self._promise
        if promise is not None:
            promise.check(reference.lake, table.name)
        ddl = reference.contract.ddl() if reference.contract else ddl_of(reference.file.frame().schema)
        moment = reference.moment()
        ddl = f"{ddl}, {history_ddl(moment)}" if table.history else ddl
        store = reference.lake.open(table.name, ddl, properties=dict(table.properties), comment=table.description)
        if table.history:
            reference.check_history(moment)
        if promise is not None:
            promise.record(store)
        return store


class ReferenceMaking(Making):
    """The whole file, whenever its content changes."""

    def __init__(self, reference: ReferenceFileTable) -> None:
        self._reference = reference

    def make(self, span: Span) -> Batch:
        reference, file, sequence = self._reference, self._reference.file, self._reference.table.sequence_by
        rows = file.read(span.since[file.name], span.to[file.name])
        rows = checked(reference.name, file.reader, rows, reference.contract, reference.keys, sequence)
        stored = reference.lake.whole(reference.name) if span.previous is not None else None
        if reference.table.history and sequence:
            rows = as_dated(rows, stored, reference.keys, sequence)
        elif reference.table.history:
            rows = as_loaded(rows, stored, reference.keys, clock.now())
        else:
            rows = last_of_each(rows, reference.keys, sequence)
        return _Reload(reference, rows, span.rows)

    def explain(self, error: Exception) -> LodeError | None:
        """Columns that are gone, another type of one, a file that is none: told as what is wrong with the file."""
        reference = self._reference
        known = reference.file.explain(error)
        if known is not None or isinstance(error, LodeError):
            return known
        # A catalog that does not answer reaches us as an error of analysis, too.
        return translate(error, reference.name) or (
            unreadable(reference.name, reference.file.path.name, error) if _is_of_file(error) else None
        )


def _is_of_file(error: Exception) -> bool:
    if isinstance(error, AnalysisException):
        return not str(error.getCondition() or "").startswith(_OF_CATALOG)
    return any(said in str(error) for said in _UNREAD)


class _Reload(Batch):
    def __init__(self, reference: ReferenceFileTable, rows: DataFrame, read: int) -> None:
        self.counts = {"in": read}
        self._reference = reference
        self._rows = rows

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        self._reference.lake.overwrite(self._reference.name, self._rows, branch, properties)
