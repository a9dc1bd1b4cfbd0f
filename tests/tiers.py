"""Run the tests tier by tier. `./dev test` calls it.

tests/tiers.py                 every tier, in order
tests/tiers.py unit [ARGS]     one tier, with further arguments for pytest
tests/tiers.py ARGS            whatever pytest accepts
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TIERS = ("unit", "spark", "stack", "chaos")
NO_TESTS = 5  # pytest's exit code
# Tests without a JVM share the cores, one process more than cores because some wait. Of those with a JVM two files run
# at a time: a small batch is mostly one thread that plans.
_IN_PAIRS = ["--numprocesses=2", "--dist=loadfile", "--no-loadscope-reorder"]
SPREAD = {
    "unit": [f"--numprocesses={(os.cpu_count() or 1) + 1}", "--dist=worksteal"],
    **dict.fromkeys(("spark", "stack", "chaos"), _IN_PAIRS),
}


def main(arguments: list[str]) -> int:
    if arguments and arguments[0] in TIERS:
        return run_tiers(arguments[:1], arguments[1:])
    if arguments and not all(one.startswith("-") for one in arguments):
        return pytest(arguments)[0]
    return run_tiers(list(TIERS), arguments)


def run_tiers(tiers: list[str], arguments: list[str]) -> int:
    summary, worst = [], 0
    for tier in tiers:
        folder = HERE / tier
        if not folder.is_dir():
            continue
        say(f"\n== {tier}")
        code, closing = pytest([str(folder), *SPREAD.get(tier, []), *arguments])
        summary.append(f"{tier:<6} {closing}")
        if code not in (0, NO_TESTS):
            worst = worst or code
        if code == 2:  # interrupted
            break
    say("\n" + "\n".join(summary))
    return worst


def pytest(arguments: list[str]) -> tuple[int, str]:
    """Its exit code and its closing line. Output passes through as it comes."""
    colour = "yes" if sys.stdout.isatty() else "no"
    command = [sys.executable, "-m", "pytest", f"--color={colour}", f"--rootdir={HERE.parent}", *arguments]
    closing = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0, start_new_session=False) as process:
        try:
            for line in _lines(process):
                if plain := re.sub(r"\x1b\[[0-9;]*m", "", line).strip():
                    closing = plain
        except KeyboardInterrupt:
            process.wait()
    return process.returncode, closing.strip("= ")


def _lines(process: subprocess.Popen[bytes]):  # type: ignore[no-untyped-def]
    """Lines, after each byte of them was shown at once: a dot per test must not wait for the line's end."""
    assert process.stdout is not None
    pending = b""
    while chunk := os.read(process.stdout.fileno(), 65536):
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
        *complete, pending = (pending + chunk).split(b"\n")
        yield from (line.decode(errors="replace") for line in complete)
    yield pending.decode(errors="replace")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
