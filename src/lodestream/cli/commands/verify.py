"""`lode verify`: is each Gold table what its query says?"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import click

from lodestream.cli.call import Call, LodeCommand, pass_call
from lodestream.cli.screen import to_json
from lodestream.cli.verify_screen import verification_text

if TYPE_CHECKING:
    from lodestream.recovery.verify.result import Verification


@click.command(
    cls=LodeCommand,
    examples=("lode verify", "lode verify gold.daily_summary --json", "lode verify 'gold.*' --sample 100 --seed 7"),
)
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@click.option("--sample", type=click.IntRange(1, 100_000), metavar="N", help="Compare N random keys instead of all.")
@click.option("--seed", type=click.IntRange(0), metavar="NUMBER", help="Choose the keys of --sample again as then.")
@pass_call
def verify(call: Call, tables: tuple[str, ...], sample: int | None, seed: int | None) -> int:
    """Compute Gold tables again from exactly the input they say they contain, and compare every row.

    Nothing is written, and a run may go on meanwhile. Without a name or pattern: every Gold table. Exit code 7 when a
    table differs from its query, 8 when one could not be verified, as when a snapshot it was made from has expired. A
    query that asks the clock or chance is not comparable, which is no failure.
    """
    from lodestream.engine import verify_tables
    from lodestream.planning.project import open_project
    from lodestream.recovery.verify.result import exit_code

    if seed is not None and sample is None:
        raise click.UsageError("--seed chooses the keys of --sample: give both")
    drawn = random.randrange(2**31) if seed is None else seed  # noqa: S311 - any sample will do
    found: list[Verification] = []
    progress = call.screen.progress()
    for one in verify_tables(open_project(call.config), tables, keys=sample, seed=drawn, progress=progress):
        found.append(one)
        if not call.json:
            call.screen.show(None, verification_text(one))
    code = exit_code(found)
    if call.json:
        call.screen.show({"tables": to_json(found), "exit_code": code})
    elif not found:
        call.screen.note("this pipeline has no Gold tables")
    return code
