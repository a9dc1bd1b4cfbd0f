"""`lode changes`: what came and went in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.text import Text

from lodestream.cli.call import Call, LodeCommand, pass_call
from lodestream.cli.screen import print_json_rows
from lodestream.clock import utc

if TYPE_CHECKING:
    from lodestream.engine.changes import ChangedRow, ChangeStream

_STYLES = {1: "green", -1: "red"}


@click.command(
    cls=LodeCommand,
    examples=(
        "lode changes silver.trips --since '15 min'",
        "lode changes silver.trips --since 2024-01-31T12:00 --limit 0 --json",
        "lode changes silver.trips --since 5735460159761889536:2000",
    ),
)
@click.argument("table")
@click.option(
    "--since",
    metavar="POSITION|TIME",
    help="After this snapshot, this position in one (SNAPSHOT:NUMBER) or this time (UTC unless it names a zone)."
    " Without it, from the beginning.",
)
@click.option("--limit", default=100, show_default=True, type=click.IntRange(0), help="How many rows; 0: all.")
@pass_call
def changes(call: Call, table: str, since: str | None, limit: int) -> None:
    """Show the rows that appeared (+) and went away (-), oldest first.

    There is a hint, and `next` with --json, from where to go on: no change is left out or comes twice.
    """
    from lodestream.engine.changes import read_changes, stream_changes
    from lodestream.planning.project import open_project

    if limit == 0:
        _show_all(call, stream_changes(open_project(call.config, tolerant=True), table, since=since))
        return
    found = read_changes(open_project(call.config, tolerant=True), table, since=since, limit=limit)
    if not found.changes and not call.json:
        call.screen.note(f"no changes in {found.table}")
    call.screen.show(found, *map(change_line, found.changes))
    if found.more and not call.json:
        call.screen.note(f"there are more: --since {found.next}, or a higher --limit")


def _show_all(call: Call, found: ChangeStream) -> None:
    """Written as they are read: they may be more than memory holds."""
    if call.json:
        after = {"more": False, "next": found.end}
        print_json_rows({"table": found.table, "feed": found.feed}, "changes", found.rows, after)
        return
    shown = 0
    for shown, one in enumerate(found.rows, 1):  # noqa: B007 (how many they were)
        call.screen.out.print(change_line(one))
    if not shown:
        call.screen.note(f"no changes in {found.table}")


def change_line(one: ChangedRow) -> Text:
    values = "  ".join(f"{name}={'null' if value is None else _on_one_line(value)}" for name, value in one.row.items())
    sign = "+" if one.weight > 0 else "-"
    return Text(f"{utc(one.at)} {sign} {values}", style=_STYLES[1 if one.weight > 0 else -1])


def _on_one_line(value: object) -> str:
    """Data is not to be trusted: an escape sequence would steer the terminal, a line break would look like a change."""
    text = str(value)
    return text if text.isprintable() else repr(text)
