"""The terms that a table is kept by now, and the edits of its contract that a person makes while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lodestream.contracts import Contract
from lodestream.errors import ContractError
from lodestream.flows.judging.terms import Terms
from lodestream.flows.notices import Notices
from lodestream.flows.promise import Promise
from lodestream.observe import ContractUnreadable
from lodestream.sources.codecs.frame import Decoder


class Edits(Protocol):
    """The declared contract, which a person may edit while the table runs."""

    def changed(self) -> bool:
        """Whether it may be another one than at the last call."""

    def load(self) -> tuple[Contract | None, Decoder | None, Promise | None]:
        """The contract as it is now and what depends on it. Raises `ContractError`."""


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
