"""The demo on a terminal."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lodestream.cli.commands.plan import TIER_STYLES
from lodestream.cli.commands.status import seconds

if TYPE_CHECKING:
    from lodestream.demo.memory import PeakMemory
    from lodestream.demo.watch import Watch
    from lodestream.engine import TableStatus


# Short, so that seven columns fit into eighty characters.
_TITLES = {
    "pickup_date": "date",
    "pickup_day_of_week": "day",
    "total_trips": "trips",
    "avg_trip_distance": "avg miles",
    "avg_trip_duration_min": "avg min",
    "total_revenue": "revenue",
    "avg_tip_percentage": "avg tip %",
}


class DemoScreen:
    """Rendered afresh each time it is shown."""

    def __init__(self, watch: Watch, memory: PeakMemory, rate: float) -> None:
        self._watch, self._memory, self._rate = watch, memory, rate
        self._began = time.monotonic()

    def __rich__(self) -> RenderableType:
        sight = self._watch.sight
        parts: list[RenderableType] = [self._heading(), Text()]
        if sight.status is None:
            return Group(*parts, Text("waiting for the first batch ...", style="dim"))
        parts += [self._tables(sight.status.tables), Text()]
        if sight.gold:
            parts += [Text("gold.daily_summary, the last days", style="bold"), gold_table(sight.gold), Text()]
        if sight.trouble:
            parts.append(Text(sight.trouble, style="yellow"))
        return Group(*parts, Text("Ctrl-C stops everything; the tables stay.", style="dim"))

    def _heading(self) -> Text:
        since = int(time.monotonic() - self._began)
        text = Text("Lodestream", style="bold")
        text.append(f"  taxi trips, {self._rate:,.0f} events/s", style="default not bold")
        return text.append(
            f"   {since // 60}:{since % 60:02}   {self._memory.now // 1_000_000:,} MB", style="dim not bold"
        )

    def _tables(self, tables: tuple[TableStatus, ...]) -> Table:
        shown = Table(box=None, pad_edge=False, header_style="bold")
        shown.add_column("table", min_width=22)
        for title in ("rows", "rows/s", "lag", "fresh", "dead"):
            shown.add_column(title, justify="right", min_width=8)
        shown.add_column("state")
        for one in tables:
            shown.add_row(
                Text(one.name, style=TIER_STYLES.get(one.tier, "")),
                "" if one.rows is None else f"{one.rows:,}",
                f"{self._watch.rate(one.name):,.0f}",
                "" if one.lag_events is None else f"{one.lag_events:,}",
                seconds(one.freshness_s),
                "" if not one.dead else f"{one.dead:,}",
                one.error or one.state,
            )
        return shown


def gold_table(rows: list[dict[str, Any]]) -> Table:
    shown = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name, value in rows[0].items():
        number = isinstance(value, int | float | Decimal)
        shown.add_column(_TITLES.get(name, name), justify="right" if number else "left", no_wrap=True)
    for row in rows:
        shown.add_row(*map(_cell, row.values()), style=TIER_STYLES["gold"])
    return shown


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int | float | Decimal) else str(value)
