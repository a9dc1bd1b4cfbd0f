"""Make docs/demo.svg: run the real demo in a terminal (tmux), wait until it flows, take a picture of the screen.

.venv/bin/python docs/record_demo.py [--seconds 60]
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

REPO = Path(__file__).resolve().parents[1]
TARGET = Path(__file__).with_name("demo.svg")
WIDTH, HEIGHT = 100, 38
SESSION = "lode-record-demo"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="how long it runs after the first Gold rows")
    seconds = parser.parse_args().seconds
    if shutil.which("tmux") is None:
        print("recording needs tmux\n  fix: install tmux", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory(prefix="lode-record-") as folder:
        tmux("new-session", "-d", "-s", SESSION, "-x", str(WIDTH), "-y", str(HEIGHT), "-c", folder, "sh")
        try:
            tmux("send-keys", "-t", SESSION, f"clear; '{REPO / 'dev'}' demo", "Enter")
            wait_for("gold.daily_summary, the last days", 300)
            time.sleep(seconds)
            screen = tmux("capture-pane", "-t", SESSION, "-e", "-p")
            tmux("send-keys", "-t", SESSION, "C-c", "")
            wait_for("Look around:", 60)
        finally:
            tmux("kill-session", "-t", SESSION)
    TARGET.write_text(picture(screen), encoding="utf-8")
    print(f"wrote {TARGET}", file=sys.stderr)
    return 0


def picture(screen: str) -> str:
    """The captured screen as SVG that fetches nothing."""
    shown = Text.from_ansi("$ ./dev demo\n\n" + screen.strip("\n"))
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(shown)
    svg = console.export_svg(title="./dev demo", unique_id="lode-demo")
    return re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def wait_for(words: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while words not in tmux("capture-pane", "-t", SESSION, "-p"):
        if time.monotonic() > deadline:
            raise SystemExit(f"never saw {words!r}; the screen:\n{tmux('capture-pane', '-t', SESSION, '-p')}")
        time.sleep(0.5)


def tmux(*arguments: str) -> str:
    return subprocess.run(["tmux", *arguments], capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    raise SystemExit(main())
