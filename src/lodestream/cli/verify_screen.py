"""What `lode verify` found, as a person reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from lodestream.recovery.verify.result import Differences, Sample, Values, Verification

_STYLES = {"equal": "green", "different": "bold red", "not comparable": "yellow", "cannot be verified": "yellow"}
_SIGNS = {"added": ("+", "green"), "missing": ("-", "red"), "changed": ("~", "yellow")}


def verification_text(one: Verification) -> Text:
    text = Text(one.table, style="bold").append(": ", style="not bold")
    text.append(one.status, style=_STYLES[one.status])
    text.append(_facts(one), style="default not bold")
    for title, found in (("", one.rows), (" of its state", one.state)):
        if found.any:
            text.append(f"\n  {_counts(found, title)}", style="default not bold")
            for sample in found.samples:
                text.append("\n    ").append_text(_sample_text(sample))
    return text


def _facts(one: Verification) -> str:
    parts = []
    if one.reason is not None:
        parts.append(one.reason)
    elif one.snapshot is not None:
        keys = "" if one.sampled is None else f" of {one.sampled:,} keys (--seed {one.seed})"
        parts.append(f"{one.rows.stored:,} {_rows(one.rows.stored)}{keys}")
    if one.snapshot is not None:
        parts.append(f"snapshot {one.snapshot}")
        parts.append(f"{one.ms / 1000:.1f} s")
    return (": " if one.reason else ", ") + ", ".join(parts)


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"


def _counts(found: Differences, title: str) -> str:
    counted = [("added", found.added), ("missing", found.missing), ("changed", found.changed)]
    said = ", ".join(f"{count:,} {kind}" for kind, count in counted if count)
    columns = ", ".join(f"{name} in {count:,}" for name, count in found.columns.items())
    beside = f" ({columns})" if columns else ""
    return f"rows{title}: {said}{beside}; stored {found.stored:,}, computed {found.fresh:,}"


def _sample_text(sample: Sample) -> Text:
    sign, style = _SIGNS[sample.kind]
    return Text(f"{sign} {_values(sample)}", style=style)


def _values(sample: Sample) -> str:
    stored, fresh = sample.stored, sample.fresh
    if stored is None or fresh is None:
        return "  ".join(_value(name, value) for name, value in (stored or fresh or {}).items())
    return "  ".join(_changed(name, stored, fresh, name in sample.columns) for name in stored)


def _changed(name: str, stored: Values, fresh: Values, differs: bool) -> str:
    if not differs:
        return _value(name, stored[name])
    return f"{name}: {_said(stored[name])} stored, {_said(fresh[name])} computed"


def _value(name: str, value: str | None) -> str:
    return f"{name}={_said(value)}"


def _said(value: str | None) -> str:
    if value is None:
        return "null"
    return value if len(value) <= 80 else f"{value[:77]}..."
