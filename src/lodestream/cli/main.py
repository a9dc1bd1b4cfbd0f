"""The `lode` command: its commands, and how every run of it ends."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import NoReturn

import click

from lodestream._version import __version__
from lodestream.cli.call import LodeGroup
from lodestream.cli.commands.broker import broker
from lodestream.cli.commands.changes import changes
from lodestream.cli.commands.completion import completion
from lodestream.cli.commands.dead import dead
from lodestream.cli.commands.demo import demo
from lodestream.cli.commands.doctor import doctor
from lodestream.cli.commands.events import events
from lodestream.cli.commands.flow import flow
from lodestream.cli.commands.init import init
from lodestream.cli.commands.plan import plan
from lodestream.cli.commands.run import run
from lodestream.cli.commands.status import status
from lodestream.cli.commands.verify import verify
from lodestream.cli.failure import STOPPED, show_crash, show_error, show_usage
from lodestream.errors import LodeError

EXIT_CODES = """
\b
Exit codes:
  0   done
  1   an error
  2   wrong usage, configuration or declaration
  3   Java, a jar, memory or disk is missing
  4   rows break the contract, or a batch does not add up
  5   another run keeps the table, or has advanced it
  6   a source is not the one we were reading
  7   a Gold table differs from its query
  8   a Gold table could not be verified
  9   the Java process ended, out of memory or killed: start again
  75  a passing trouble, such as an unreachable broker: try again
  130 stopped by Ctrl-C
"""


@click.group(
    cls=LodeGroup,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    examples=("lode init shop", "lode --project shop run --once", "lode --project shop status --json"),
)
@click.version_option(__version__, prog_name="lode")
def lode() -> None:
    """Bronze, Silver and Gold tables that keep themselves current, seconds behind Kafka."""


for _command in (init, plan, run, flow, status, events, changes, verify, dead, broker, demo, doctor, completion):
    lode.add_command(_command)


def main() -> NoReturn:
    """The entry point of the installed command."""
    for stream in (sys.stdout, sys.stderr):
        # What a broken event holds must be shown, even where no encoding has a character for it.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: list[str]) -> int:
    """Run one command and say how it ended."""
    json, debug = "--json" in arguments, "--debug" in arguments
    try:
        code = lode.main(args=list(arguments), prog_name="lode", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except LodeError as error:
        return show_error(error, json=json)
    except click.UsageError as error:
        return show_usage(error, json=json)
    except (KeyboardInterrupt, click.Abort):
        click.echo("stopped", err=True)
        return STOPPED
    except BrokenPipeError:
        # The reader has gone, as in `lode events | head`. Python would complain once more while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return show_crash(error, arguments, json=json, debug=debug)
