"""What a table does by its contract, and the edits of it that a person makes while the table runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

from lodestream.config import nearest
from lodestream.contracts import Contract
from lodestream.errors import ContractError, DeclarationError
from lodestream.flows.code.declared import DeclaredRows
from lodestream.flows.columns.shape import partition_columns
from lodestream.flows.context import Notices
from lodestream.flows.directory.directory import Addresses, DirectoryKeeper
from lodestream.flows.judging.judge import Judge
from lodestream.flows.judging.limits import LimitWatch
from lodestream.flows.judging.unique import Uniqueness
from lodestream.flows.promise import Promise
from lodestream.observe import ContractUnreadable
from lodestream.pipeline import Partition, Table, parse_partition
from lodestream.pipeline.location import declaration_error
from lodestream.sources.codecs.frame import Decoder, UnknownFields

Loaded = tuple[Contract | None, Decoder | None, Promise | None]
_FileState = tuple[int, int, int]


@dataclass(frozen=True)
class Terms:
    """Nothing of it changes: an edited contract makes new terms.

    `dedups` is whether the first row of a key stays and the next ones are duplicates; in a table that keeps the last
    change of a key it is not so.
    """

    table: Table
    contract: Contract | None
    rows: DeclaredRows
    keys: tuple[str, ...]
    limits: LimitWatch | None
    judging: Callable[[Terms], Judge]
    dedups: bool

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def decode(self) -> Decoder | None:
        return self.rows.decode

    @property
    def arrival(self) -> str | None:
        """When an event came, as an expression over judged rows."""
        found, late = self.rows.arrival, self.contract is not None and self.contract.lateness is not None
        if found is None and late and self.decode is not None:
            raise DeclarationError(
                f"{self.name}: its contract declares lateness, and nothing says when an event came",
                why=f"{self.rows.driving} has no column for it",
                fix="take `lateness` out of the contract, or let the source say: Coordinates(..., arrival=COLUMN)",
            )
        return found

    @property
    def judges(self) -> bool:
        """Whether rows may turn out to be dead letters or duplicates."""
        return self.rows.carries

    @cached_property
    def careful(self) -> Terms:
        """The same, with every row judged by itself."""
        return self if self.judges else replace(self, rows=replace(self.rows, carries=True))

    @cached_property
    def judge(self) -> Judge:
        return self.judging(self)

    @cached_property
    def unique(self) -> Uniqueness | None:
        return Uniqueness.of(self.contract, self.keys)

    @cached_property
    def unknown(self) -> UnknownFields:
        return UnknownFields(self.decode)

    @cached_property
    def directory(self) -> DirectoryKeeper:
        """Knows which keys the table surely has not."""
        lake = self.rows.lake
        noted = (*self.table.dedupe_within, *self.table.partition_by)
        addresses = Addresses.over(self.keys, noted, lake.whole(self.name).schema)
        # Where the first row of a key stays, most batches then read nothing of the table, however small it is.
        return DirectoryKeeper(lake, self.name, addresses, fewest=0 if self.dedups else None)

    @cached_property
    def bound(self) -> tuple[Partition, ...]:
        """The periods within which keys and unique values are compared; none: in the whole table."""
        return tuple(map(parse_partition, self.table.dedupe_within))

    @cached_property
    def near(self) -> tuple[Partition, ...]:
        """Rows with the same key lie in the same partition of these."""
        of_key = [one for one in partition_columns(self.table.partition_by, self.keys) if one not in self.bound]
        return (*self.bound, *of_key)

    def check_keys(self, wanted: Contract) -> None:
        """Rows cannot be told apart by a column that they do not have; Spark would say so in words of its own."""
        held = {field.name.lower(): field.name for field in wanted}
        missing = [key for key in self.keys if key.lower() not in held]
        if missing:
            close = nearest(missing[0], held.values())
            raise declaration_error(
                self.table.location,
                f'{self.name}: keys names "{missing[0]}", which it does not have',
                why=f"its columns are {', '.join(held.values())}",
                fix=f"did you mean {close}?" if close else "name columns that it returns; decode= says what there is",
            )

    @cached_property
    def title(self) -> str | None:
        return self.contract.title if self.contract else None

    @property
    def comment(self) -> str | None:
        return self.table.description or (self.contract.description if self.contract else None)


class Edits(Protocol):
    """The declared contract, which a person may edit while the table runs."""

    def changed(self) -> bool:
        """Whether it may be another one than at the last call."""

    def load(self) -> Loaded:
        """The contract as it is now and what depends on it. Raises `ContractError`."""


class ContractEdits:
    """Tells when a file that a table's contract or decoder comes from has changed. A look costs one `stat` a file."""

    def __init__(self, files: Sequence[Path], load: Callable[[], Loaded]) -> None:
        self._files = tuple(files)
        self.load = load
        self._seen = self._look()

    def changed(self) -> bool:
        """Whether a file is another one than at the last call."""
        before, self._seen = self._seen, self._look()
        return before != self._seen

    def _look(self) -> tuple[_FileState | None, ...]:
        return tuple(map(_state, self._files))


@dataclass(frozen=True, slots=True)
class Edit:
    """An edited contract that can be read and says something else."""

    terms: Terms
    contract: Contract
    promise: Promise | None


class Contracted:
    def __init__(
        self,
        make: Callable[[Contract | None, Decoder | None], Terms],
        contract: Contract | None,
        decode: Decoder | None,
        promise: Promise | None,
        edits: Edits | None,
        notices: Notices,
    ) -> None:
        self.terms = make(contract, decode)
        self.promise = promise
        self._make = make
        self._edits = edits
        self._notices = notices
        self._waits = False  # whether an edit waits to be applied

    def edited(self) -> Edit | None:
        """An edit that has yet to be applied. It is told again until `agree`: an error on the way must not
        make us forget it. One that cannot be read changes nothing until it can."""
        if self._edits is None or not (self._edits.changed() or self._waits):
            return None
        self._waits = True
        try:
            contract, decode, promise = self._edits.load()
        except ContractError as error:
            self._notices.add(ContractUnreadable(what=error.what, why=error.why))
            self._waits = False
            return None
        if contract is None or contract == self.terms.contract:
            self._waits = False
            return None
        return Edit(self._make(contract, decode), contract, promise)

    def agree(self, edit: Edit) -> None:
        """From the next batch on the table is kept by these terms."""
        self.terms, self.promise, self._waits = edit.terms, edit.promise, False


def _state(file: Path) -> _FileState | None:
    try:
        found = file.stat()
    except OSError:
        return None  # an editor is replacing it
    return found.st_mtime_ns, found.st_size, found.st_ino
