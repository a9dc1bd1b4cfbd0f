"""One event as a person reads it; `--json` has every field."""

from __future__ import annotations

from datetime import datetime
from textwrap import shorten
from typing import Any

from rich.text import Text

from lodestream.observe.events import Event

_STOPS = ("flow.stopped", "flow.blocked")
_STYLES = {
    "batch.published": "green",
    "flow.retry": "yellow",
    "flow.stopped": "bold red",
    "flow.blocked": "bold red",
    "flow.paused": "yellow",
    "definition.changed": "yellow",
    "lease.missing": "yellow",
    "batch.refused": "bold red",
    "gap.accepted": "yellow",
    "contract.unreadable": "yellow",
    "verify.equal": "green",
    "verify.mismatch": "bold red",
    "verify.rebuilt": "yellow",
    "column.unfilled": "yellow",
}


def event_line(event: Event) -> Text:
    text = Text(f"{datetime.fromtimestamp(event.time):%H:%M:%S} ", style="dim")
    text.append(event.name, style=_STYLES.get(event.name, "cyan"))
    if event.table:
        text.append(f" {event.table}", style="default bold")
    return text.append(_said(event), style="default")


def _said(event: Event) -> str:
    fields = event.fields
    if event.name == "batch.published":
        return f" {_batch(fields)}"
    if event.name == "flow.retry":
        again = f"; try {fields.get('tries', 1)}, again in {fields.get('pause_s', 0):.1f} s"
        return f" {fields.get('error')}: {str(fields['what']).splitlines()[-1]}{again}"
    if event.name == "definition.changed":
        return f" {fields['file']}: {fields['fix']}"
    if "what" in fields:
        # A table's name may stand in the message too; the first line is enough here.
        return f" {fields.get('error')}: {str(fields['what']).splitlines()[-1]}{_because(event)}"
    if event.name == "column.unfilled":
        return f" {', '.join(fields['columns'])}: null in every row, since the function does not return it"
    if event.name in ("schema-change", "field.unknown"):
        return f" {_listed(fields)}"
    shown = {key: value for key, value in fields.items() if isinstance(value, str | int | float)}
    return "".join(f" {key}={value}" for key, value in shown.items() if key != "traceback")


def _because(event: Event) -> str:
    """A stop is read at once, and by whoever has only this line of it."""
    why = str(event.fields.get("why") or "").strip()
    return f" ({shorten(why.splitlines()[0], 300)})" if why and event.name in _STOPS else ""


def _listed(fields: Any) -> str:
    """`orders 1.1.0: add tip bigint; kind: ...`, or `note, tip in 12 rows`."""
    if "fields" in fields:
        return f"{', '.join(fields['fields'])} in {fields['rows']:,} rows"
    return f"{fields['contract']}: {'; '.join([*fields['steps'], *fields['changes']])}"


def _batch(fields: Any) -> str:
    rows, parts = fields["rows"], []
    for name in ("dead", "filtered", "duplicates", "warned"):
        if rows.get(name):
            parts.append(f"{rows[name]:,} {name.removesuffix('s') if rows[name] == 1 else name}")
    if rows.get("no_rows"):
        parts.append(f"{rows['no_rows']:,} gave no row")
    beside = f" ({', '.join(parts)})" if parts else ""
    return f"batch {fields['batch']:,}: {rows.get('out', 0):,} rows{beside} in {fields['ms']['total'] / 1000:.2f} s"
