"""`lode doctor`: look at everything a run needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.text import Text

from lodestream.cli.call import Call, LodeCommand, pass_call

if TYPE_CHECKING:
    from lodestream.doctor import Check

_DEFAULT = "default"
_SIGNS = {"ok": ("ok", "green"), "warning": ("warning", "yellow"), "broken": ("broken", "bold red")}


@click.command(cls=LodeCommand, examples=("lode doctor", "lode doctor --fetch", "lode doctor --json"))
@click.option("--fetch", is_flag=True, help="Fetch the jars that are missing, so that runs work offline.")
@pass_call
def doctor(call: Call, fetch: bool) -> int:
    """Check Java, jars, memory, disk, ports, broker, catalog and clock. Exit code 1 when something is broken.

    Behind the checks stands each setting that is not the default, and where it came from; with --json every one.
    """
    from lodestream.doctor import examine

    found = []
    for check in examine(call.config, call.screen.progress(), fetch=fetch):
        found.append(check)
        if not call.json:
            call.screen.out.print(_line(check))
    healthy = all(check.state != "broken" for check in found)
    settings = call.config.describe()
    if call.json:
        told = [{"key": key, "value": value, "origin": origin} for key, value, origin in settings]
        call.screen.show({"healthy": healthy, "checks": found, "settings": told})
    else:
        call.screen.show(None, *(_setting(*one) for one in settings if one[2] != _DEFAULT))
    return 0 if healthy else 1


def _setting(key: str, value: str, origin: str) -> Text:
    return (
        Text().append(f"{'setting':<17}", style="dim").append(f"{key} = {value}").append(f"  ({origin})", style="dim")
    )


def _line(check: Check) -> Text:
    sign, style = _SIGNS[check.state]
    text = Text().append(f"{sign:<8}", style=style).append(f"{check.name:<8} ", style="bold").append(check.found)
    if check.fix and check.state != "ok":
        text.append("\n" + " " * 17).append("fix: ", style="bold").append(check.fix)
    return text
