"""`lode dead`: rows that broke their contract, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from lodestream.cli.call import Call, LodeCommand, LodeGroup, pass_call
from lodestream.cli.dead_screen import (
    letter_json,
    letter_text,
    letters_text,
    nothing_found,
    nothing_to_replay,
    replayed_text,
)
from lodestream.cli.library_logs import keep_library_logs
from lodestream.errors import ConfigError
from lodestream.recovery.choice import STATES, Choice, State, check_letters, parse_moment

_BROKEN = 4


def _chosen(limit: int | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The filters that every command takes."""
    options = (
        click.option("--reason", metavar="TEXT", help="Only letters with this in one of their reasons."),
        click.option("--rule", metavar="NAME", help="Only letters that broke this rule or expectation."),
        click.option(
            "--since",
            metavar="TIME",
            help='Dead at or after: 2024-01-31T10:00 (UTC unless it names a zone), or "15 min" (ago).',
        ),
        click.option("--until", metavar="TIME", help="Dead before: the same forms."),
        click.option("--batch", type=int, metavar="N", help="Only of this batch."),
        click.option(
            "--limit", "-n", type=click.IntRange(1), default=limit, show_default=True, help="At most so many."
        ),
    )

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _choice(letters: tuple[str, ...], filters: dict[str, Any]) -> Choice:
    if filters["reason"] and filters["rule"]:
        raise ConfigError("--reason and --rule both say which reason", fix="give one of them")
    return Choice(
        letters=check_letters(letters),
        reason=filters["reason"],
        rule=filters["rule"],
        since=parse_moment(filters["since"]) if filters["since"] else None,
        until=parse_moment(filters["until"]) if filters["until"] else None,
        batch=filters["batch"],
        limit=filters["limit"],
    )


def _states(given: str | None) -> tuple[State, ...]:
    return STATES if given == "all" else tuple(one for one in STATES if one == (given or "open"))


_STATE = click.option("--state", type=click.Choice([*STATES, "all"]), help="Default: open; with ids or --batch: all.")


@click.group(cls=LodeGroup, examples=("lode dead list", "lode dead replay silver.orders"))
def dead() -> None:
    """Rows that may not enter their table: look at them, replay them after a fix, or discard them."""


@dead.command(
    "list",
    cls=LodeCommand,
    examples=("lode dead list", "lode dead list silver.orders --rule paid --since '1 h'", "lode dead list --json"),
)
@click.argument("table", required=False)
@_chosen(50)
@_STATE
@pass_call
def list_letters(call: Call, table: str | None, state: str | None, **filters: Any) -> None:
    """List dead letters by their reasons, the most frequent first, and where each came from. Needs no Java."""
    from lodestream.engine import dead_letters
    from lodestream.planning.project import open_project

    choice = _choice((), filters)
    states = _states(state or ("all" if choice.batch is not None else None))
    project = open_project(call.config, tolerant=True)
    found = dead_letters(project, table, choice, states)
    if not any(one.total for one in found):
        call.screen.note(nothing_found(choice, dead_letters(project, table, Choice(limit=1), STATES)))
    call.screen.show({"tables": found}, *(letters_text(one) for one in found if one.total))


@dead.command(
    cls=LodeCommand,
    examples=("lode dead show silver.orders 3f2a", "lode dead show silver.orders --batch 41 --limit 3"),
)
@click.argument("table")
@click.argument("letters", nargs=-1, metavar="[ID]...")
@_chosen(20)
@_STATE
@pass_call
def show(call: Call, table: str, letters: tuple[str, ...], state: str | None, **filters: Any) -> None:
    """Show dead letters whole: bytes, headers, every reason. An id may be shortened."""
    from lodestream.engine import dead_letters
    from lodestream.planning.project import open_project

    choice = _choice(letters, filters)
    all_states = bool(letters) or choice.batch is not None
    project = open_project(call.config, tolerant=True)
    found = dead_letters(project, table, choice, _states(state or ("all" if all_states else None)), content=True)
    shown = [letter for one in found for letter in one.found]
    if not shown:
        call.screen.note(nothing_found(choice, dead_letters(project, table, Choice(limit=1), STATES)))
    call.screen.show({"letters": [letter_json(one) for one in shown]}, *map(letter_text, shown))


@dead.command(
    cls=LodeCommand,
    examples=(
        "lode dead replay silver.orders --dry-run",
        "lode dead replay silver.orders --rule paid",
        "lode dead replay silver.orders 3f2a 9c01",
    ),
)
@click.argument("table")
@click.argument("letters", nargs=-1, metavar="[ID]...")
@_chosen(None)
@click.option("--dry-run", is_flag=True, help="Only say what would pass now.")
@pass_call
def replay(call: Call, table: str, letters: tuple[str, ...], dry_run: bool, **filters: Any) -> int:
    """Judge open letters again, by the code and the contract as they are now, and publish those that pass.

    The others stay open, and the exit code is 4. Works beside a run; doing it twice adds nothing.
    """
    from lodestream.engine import dead_letters, replay_dead
    from lodestream.planning.project import open_project

    choice, project = _choice(letters, filters), open_project(call.config)
    keep_library_logs(call.config, events_shown=False)
    there = dead_letters(project, table, choice, ("open", "pending"))
    if not any(one.states["open"] for one in there):
        from lodestream.recovery.replay import Replayed

        call.screen.note(nothing_to_replay(sum(one.states["pending"] for one in there)))
        done = Replayed(table, dry_run=dry_run)
    else:
        done = replay_dead(project, table, choice, dry_run=dry_run, progress=call.screen.progress())
    call.screen.show(done, replayed_text(done))
    return _BROKEN if done.failing else 0


@dead.command(
    cls=LodeCommand,
    examples=(
        "lode dead discard silver.orders --reason malformed --note 'a broken producer, 31 January'",
        "lode dead discard silver.orders --all",
    ),
)
@click.argument("table")
@click.argument("letters", nargs=-1, metavar="[ID]...")
@_chosen(None)
@click.option("--all", "everything", is_flag=True, help="Every open letter: needed when no filter is given.")
@click.option("--note", metavar="TEXT", help="Why; kept with the letters.")
@pass_call
def discard(
    call: Call, table: str, letters: tuple[str, ...], everything: bool, note: str | None, **filters: Any
) -> None:
    """Close open letters without a replay. They stay readable."""
    from lodestream.engine import discard_dead
    from lodestream.planning.project import open_project

    choice = _choice(letters, filters)
    if choice.everything and not everything:
        raise ConfigError("this would discard every open letter", fix="give ids or a filter, or say --all")
    keep_library_logs(call.config, events_shown=False)
    count = discard_dead(open_project(call.config), table, choice, note=note, progress=call.screen.progress())
    call.screen.show({"table": table, "discarded": count}, f"{count:,} letter{'' if count == 1 else 's'} discarded")
