"""Dead letters on a terminal."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from rich.text import Text

from lodestream.clock import utc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lodestream.recovery.choice import Choice
    from lodestream.recovery.letters import Letter, Letters
    from lodestream.recovery.replay import Replayed

_STYLES = {"open": "yellow", "replayed": "green", "discarded": "dim", "pending": "cyan"}
_ID = 8
_WIDEST = 24
_MOST_REASONS = 5
_MOST_BYTES = 4096


def letters_text(found: Letters) -> Text:
    """Letters under what they have in common. Lines, not columns: they fold where the terminal ends."""
    counted = ", ".join(f"{count:,} {state}" for state, count in found.states.items())
    text = Text(found.table, style="bold", overflow="fold").append(f": {counted}", style="not bold")
    for group, count in sorted(found.groups.items(), key=lambda one: (-one[1], one[0])):
        shown = [one for one in found.found if one.group == group]
        text.append(f"\n{count:,}: ", style="bold").append(group, style="not bold")
        for one in shown:
            text.append("\n  ").append_text(_letter_line(one))
        if shown and count > len(shown):
            text.append(f"\n  and {count - len(shown):,} older", style="dim")
    if found.total > len(found.found):
        text.append(f"\nthe newest {len(found.found):,} of {found.total:,}; --limit shows more", style="dim")
    return text


def _letter_line(one: Letter) -> Text:
    when = utc(one.dead_at)
    batch = "" if one.batch is None else f"batch {one.batch:,}"
    told = "; ".join(filter(None, (_beyond(reason, one.group) for reason in one.reasons)))
    line = Text(one.letter[:_ID], style="not bold")
    for word in (when, batch, _end_of(one.coordinates)):
        line.append(f" {word}" if word else "")
    return line.append(f" {one.state}", style=_STYLES[one.state]).append(f" {told}" if told else "")


def _beyond(reason: str, group: str) -> str:
    """What a reason says besides the group: mostly the value."""
    common = next((part for part in group.split("; ") if reason.startswith(part)), None)
    return reason if common is None else reason[len(common) :].removeprefix(": ")


def nothing_found(choice: Choice, there: Sequence[Letters]) -> str:
    """Which rules were broken at all, when one was asked for that was not."""
    broken = {
        kind.partition(": ")[2] for one in there for kind in one.reasons if kind.startswith(("rule: ", "expect: "))
    }
    known = f"; rules that were broken: {', '.join(sorted(broken))}" if choice.rule and broken else ""
    return f"no such dead letters{known}"


def nothing_to_replay(pending: int) -> str:
    if not pending:
        return "no open dead letters"
    letters = "1 letter is" if pending == 1 else f"{pending:,} letters are"
    return (
        f"no open dead letters; {letters} pending, of a batch that is not published: "
        "if it broke a limit of the contract, correct the contract or the code and run again"
    )


def letter_text(one: Letter) -> Text:
    text = Text(f"letter {one.letter}", style="bold").append(f" {one.state}", style=f"not bold {_STYLES[one.state]}")
    lines = [("from", one.coordinates), ("batch", f"{one.batch} of run {one.run}"), ("dead at", utc(one.dead_at))]
    if one.contract:
        lines.append(("contract", one.contract))
    if one.decided_at:
        by = f" by batch {one.decided_by}" if one.decided_by else ""
        lines.append((one.state, f"{utc(one.decided_at)}{by}{f': {one.note}' if one.note else ''}"))
    lines += [("reason", reason) for reason in one.reasons]
    lines += [(f"header {key}", _bytes(value)) for key, value in one.headers]
    lines += [("key", _bytes(one.key))] if one.key is not None else []
    lines.append(("value", _bytes(one.value)))
    for label, line in lines:
        text.append(f"\n  {label}: ", style="default bold").append(line, style="default not bold")
    return text.append("\n")


def letter_json(one: Letter) -> dict[str, Any]:
    """Bytes as text, or as `{"base64": ...}` where they are none."""
    shown = {field.name: getattr(one, field.name) for field in fields(one)}
    headers = [{"key": key, "value": _json_bytes(value)} for key, value in one.headers]
    return {**shown, "key": _json_bytes(one.key), "value": _json_bytes(one.value), "headers": headers}


def replayed_text(done: Replayed) -> Text:
    would = "would pass" if done.dry_run else "replayed"
    passing = done.chosen - done.failing if done.dry_run else done.replayed
    rows = "".join(
        f", {done.rows[name]:,} {word}"
        for name, word in (("out", "rows"), ("duplicates", "duplicates"), ("filtered", "filtered out"))
        if done.rows[name]
    )
    text = Text(f"{done.table}: {passing:,} of {done.chosen:,} letters {would}{rows}")
    if done.failing:
        text.append(f"; {done.failing:,} stay open")
    for reason, count in done.reasons.most_common(_MOST_REASONS):
        text.append(f"\n  {count:,}: ", style="bold").append(reason)
    return text


def _end_of(place: str) -> str:
    """The file's name and the row matter more than the way there, and the reasons more than both."""
    return place if len(place) <= _WIDEST else f"…{place[1 - _WIDEST :]}"


def _json_bytes(value: bytes | None) -> str | dict[str, str] | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(value or b"").decode()}


def _bytes(value: bytes | None) -> str:
    """Text where it is text, JSON spelt out, everything else as Python spells bytes."""
    if value is None:
        return "null"
    shown, more = value[:_MOST_BYTES], f" ... {len(value):,} bytes in all" if len(value) > _MOST_BYTES else ""
    try:
        text = shown.decode() if not more else shown.decode(errors="ignore")
    except UnicodeDecodeError:
        return f"{shown!r}{more}"
    try:
        return json.dumps(json.loads(text), ensure_ascii=False) + more
    except ValueError:
        return (text if text.isprintable() and text else repr(shown)) + more
