"""Tables in the width there is: no cell is cut or folded where something less important can be left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

GAP = 2  # between two columns
_REASON = 40  # characters that a reason needs beside the other columns


class Fitted:
    """The first of `tables` that fits; reasons stand beside it where they have room, as in `whole`, else below."""

    def __init__(self, whole: Table, tables: Sequence[Table], reasons: Mapping[str, str]) -> None:
        self._whole, self._tables, self._reasons = whole, tables, reasons

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        if width_of(self._tables[0]) + (GAP + _REASON if self._reasons else 0) <= width:
            yield self._whole
            return
        yield next((one for one in self._tables if width_of(one) <= width), self._tables[-1])
        for table, reason in self._reasons.items():
            yield Text(table, style="bold", overflow="fold").append(f": {reason}", style="not bold")


def plain_table() -> Table:
    return Table(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))


def width_of(table: Table) -> int:
    """With every cell on lines of its own width."""
    wide = [max(map(_width, (column.header, *column.cells))) for column in table.columns]
    return sum(wide) + GAP * max(0, len(wide) - 1)


def _width(cell: object) -> int:
    text = cell.plain if isinstance(cell, Text) else str(cell)
    return max(map(cell_len, text.splitlines() or [""]))
