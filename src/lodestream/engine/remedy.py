"""What can put a stopped flow right from outside, and when it is worth another try."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from py4j.protocol import Py4JNetworkError

from lodestream.engine.contract_files import contract_files
from lodestream.errors import (
    ConfigError,
    ContractError,
    ContractViolation,
    DeclarationError,
    LodeError,
    SourceUnreadable,
    Transient,
)
from lodestream.pipeline import Table

# Seconds between looks at the files; the first and the longest pause between tries when nothing shows a change.
LOOK_SECONDS = 1.0
_FIRST, _LONGEST = 5.0, 60.0

# Corrected by editing a file that the table is declared with; rows of Gold by their inputs as well.
_BY_FILES = (ContractViolation, ContractError, DeclarationError)
# Corrected elsewhere, where only another try shows it: a registry, a broker's access rules, a file of the source.
_BY_TIME = (Transient, ConfigError, SourceUnreadable)
_PERMISSION = ("Permission denied", "AccessDenied", "Access Denied")

_State = tuple[tuple[int, int, int] | None, ...]


class Remedy:
    """Watches over one flow that is blocked. Everything that must stop a flow for good is not for it."""

    def __init__(
        self, files: Sequence[Path] = (), clock: Callable[[], float] = time.monotonic, *, by_inputs: bool = False
    ) -> None:
        """`by_inputs` says that the table is made anew from its inputs, so that other rows there make other rows here:
        what breaks its contract may be put right upstream.
        """
        self._files = tuple(files)
        self._by_inputs = by_inputs
        self._awaits = self._news = False
        self._clock = clock
        self._seen: _State = ()
        self._tries = 0
        self._next = 0.0
        self._timed = False

    def helps(self, error: LodeError) -> bool:
        return self._by_time(error) or self._by_news(error) or (bool(self._files) and isinstance(error, _BY_FILES))

    def wait(self, error: LodeError) -> None:
        """The flow has just failed, on the files as they are now."""
        self._seen = self._look()
        self._timed = self._by_time(error)
        self._awaits = self._by_news(error)
        self._next = self._clock() + min(_LONGEST, _FIRST * 2**self._tries)
        self._tries += 1

    def worth_a_try(self) -> bool:
        """Whether a file has changed, or the time has come. Asked every second, so it costs a `stat` a file."""
        if self._look() != self._seen:
            self._tries = 0
            return True
        return (self._timed or (self._awaits and self._news)) and self._clock() >= self._next

    def begin(self) -> None:
        """Another try begins: it sees what the inputs hold now."""
        self._news = False

    def news(self) -> None:
        """An input was published, perhaps in the middle of a try. A stream of them makes no stream of tries."""
        self._news = True

    def succeeded(self) -> None:
        self._tries = 0

    def _by_time(self, error: LodeError) -> bool:
        if _jvm_gone(error):
            return False
        return isinstance(error, _BY_TIME) or any(said in str(error.why) for said in _PERMISSION)

    def _by_news(self, error: LodeError) -> bool:
        return self._by_inputs and isinstance(error, ContractViolation)

    def _look(self) -> _State:
        return tuple(map(_state, self._files))


def files_of(table: Table) -> list[Path]:
    """The files that decide whether a table can go on: its contract, its schema, its reference data."""
    found = contract_files(table)
    if table.reference is not None:
        found.append(Path(table.reference.path))
    return found


def _jvm_gone(error: BaseException | None) -> bool:
    """Only another process helps then."""
    seen = 0
    while error is not None and seen < 12:
        if isinstance(error, Py4JNetworkError):
            return True
        error, seen = error.__cause__ or error.__context__, seen + 1
    return False


def _state(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
