"""Whatever an event holds can be shown: half a surrogate pair has no encoding."""

from __future__ import annotations

import subprocess
import sys


def test_text_that_no_encoding_has_is_shown_and_nothing_crashes() -> None:
    code = (
        "import sys, click\n"
        "from lodestream.cli import main\n"
        "main.run_command = lambda arguments: click.echo('note is \\ud800') or 0\n"
        "main.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "note is \\ud800"), done.stderr
