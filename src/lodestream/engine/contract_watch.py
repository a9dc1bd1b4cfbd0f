"""Contract files that are edited while their table runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from lodestream.contracts import Contract
from lodestream.flows.promise import Promise
from lodestream.pipeline import Table
from lodestream.sources.codecs.frame import Decoder

_State = tuple[tuple[int, int, int] | None, ...]


Loaded = tuple[Contract | None, Decoder | None, Promise | None]


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

    def _look(self) -> _State:
        return tuple(map(_state, self._files))


def contract_files(table: Table) -> list[Path]:
    found = [table.contract] if isinstance(table.contract, Path) else []
    schema = table.decode.schema_text if table.decode else None
    if schema is not None and schema.endswith((".yaml", ".yml")):
        found.append(Path(table.location.file).parent / schema)
    return found


def _state(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None  # an editor is replacing it
    return found.st_mtime_ns, found.st_size, found.st_ino
