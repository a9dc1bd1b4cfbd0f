"""Write the table of docs/events.md from the types of the events. `./dev docs` calls it; a test compares."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from lodestream.observe import Event, EventName, Severity, event_types

FILE = Path(__file__).with_name("events.md")
_TABLE = re.compile(r"^\| event \|.*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def page() -> str:
    """The page as it is, with the table as it has to be."""
    return _TABLE.sub(lambda _: table(), FILE.read_text(encoding="utf-8").rstrip(), count=1) + "\n"


def _shown(hint: Any) -> str:
    if type(None) in get_args(hint):
        return f"{_shown(get_args(hint)[0])} or null"
    if get_origin(hint) is tuple:
        return f"list of {_shown(get_args(hint)[0])}"
    if get_origin(hint) is not None:
        inner = get_args(hint)[1]
        return "object" if inner is Any else f"object of {_shown(inner)}"
    return {str: "text", int: "integer", float: "number", bool: "boolean"}[hint]


def _told(one: type[Event]) -> str:
    hints = get_type_hints(one)
    optional = {field.name for field in dataclasses.fields(one) if field.default is None}
    types = {name: _shown(hints[name]) for name in one.told()}
    return "; ".join(
        f"`{name}` {kind.removesuffix(' or null')}, if any" if name in optional else f"`{name}` {kind}"
        for name, kind in types.items()
    )


def table() -> str:
    """Every event with its fields."""
    by_name = {one.event_name: one for one in event_types()}
    lines = ["| event | | when | fields |", "|---|---|---|---|"]
    for name in EventName:
        one = by_name[name]
        severity = "" if one.severity is Severity.NORMAL else str(one.severity)
        lines.append(f"| `{name}` | {severity} | {(one.__doc__ or '').strip()} | {_told(one)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
    print(f"wrote {FILE}", file=sys.stderr)
