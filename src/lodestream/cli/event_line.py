"""One event as a person reads it; `--json` has every field."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from textwrap import shorten

from rich.text import Text

from lodestream.clock import utc
from lodestream.config import format_duration
from lodestream.observe import (
    BatchPublished,
    ColumnUnfilled,
    DefinitionChanged,
    Event,
    FieldUnknown,
    FlowBlocked,
    FlowRetry,
    FlowStopped,
    SchemaChange,
    Severity,
    SinkBlocked,
    SinkRetry,
)

_STYLES = {
    Severity.GOOD: "green",
    Severity.NORMAL: "cyan",
    Severity.WARNING: "yellow",
    Severity.ALERT: "bold red",
}


def event_line(event: Event) -> Text:
    text = Text(f"{utc(event.time)} ", style="dim")
    text.append(event.name, style=_STYLES[event.severity])
    if event.table:
        text.append(f" {event.table}", style="default bold")
    return text.append(_said(event), style="default")


@singledispatch
def _said(event: Event) -> str:
    """Most events are shown by their fields; those that a person meets often have a sentence below."""
    facts = event.facts()
    if "what" in facts:
        return _trouble(event, facts.get("error"), facts["what"])
    shown = {key: value for key, value in facts.items() if isinstance(value, str | int | float)}
    return "".join(f" {key}={value}" for key, value in shown.items() if key != "traceback")


@_said.register
def _(event: BatchPublished) -> str:
    rows, parts = event.rows, []
    for name in ("dead", "filtered", "duplicates", "warned"):
        if rows.get(name):
            parts.append(f"{rows[name]:,} {name.removesuffix('s') if rows[name] == 1 else name}")
    if rows.get("no_rows"):
        parts.append(f"{rows['no_rows']:,} gave no row")
    beside = f" ({', '.join(parts)})" if parts else ""
    return f" batch {event.batch:,}: {_written(rows)}{beside} in {event.ms['total'] / 1000:.2f} s"


@_said.register
def _(event: FlowRetry | SinkRetry) -> str:
    most_tries = event.most_tries if isinstance(event, FlowRetry) else None
    most = f" of {most_tries:,}" if most_tries is not None else ""
    limit = f", for {format_duration(event.give_up_s)} at most" if event.give_up_s is not None else ""
    again = f"attempt {event.tries:,}{most} failed, next try in {event.pause_s:.1f} s{limit}"
    return f"{_trouble(event, event.error, event.what)}{_because(event.why)}; {again}"


@_said.register
def _(event: FlowStopped | FlowBlocked | SinkBlocked) -> str:
    return f"{_trouble(event, event.error, event.what)}{_because(event.why)}"


@_said.register
def _(event: DefinitionChanged) -> str:
    return f" {event.file}: {event.fix}"


@_said.register
def _(event: ColumnUnfilled) -> str:
    return f" {', '.join(event.columns)}: null in every row, since the function does not return it"


@_said.register
def _(event: FieldUnknown) -> str:
    """`note, tip in 12 rows`."""
    return f" {', '.join(event.fields)} in {event.rows:,} rows"


@_said.register
def _(event: SchemaChange) -> str:
    """`orders 1.1.0: add tip bigint; kind: ...`."""
    return f" {event.contract}: {'; '.join([*event.steps, *event.changes])}"


def _trouble(event: Event, error: object, what: object) -> str:
    """In one line; many messages begin with the table, which stands before them here."""
    said = next(reversed(str(what).splitlines()), "").removeprefix(f"{event.table}: ")
    return f" {error}: {said}" if error else f" {said}"


def _because(why: str | None) -> str:
    """A stop or a retry is read at once, and by whoever has only this line of it."""
    said = (why or "").strip()
    return f" ({shorten(said.splitlines()[0], 300)})" if said else ""


def _written(rows: Mapping[str, int]) -> str:
    written = rows.get("out", 0)
    said = f"{written:,} row{'' if written == 1 else 's'}"
    return f"{said} upserted, {rows.get('deleted', 0):,} deleted" if "upserted" in rows else said
