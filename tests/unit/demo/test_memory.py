"""The memory of a process and of all it started, each page once."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from lodestream.demo.memory import PeakMemory

MB = 1_000_000


def peak_while(action) -> int:
    with PeakMemory() as memory:
        time.sleep(0.6)
        before = memory.now
        action()
    return memory.peak - before


def test_a_child_of_a_child_counts():
    code = "x = bytearray(200_000_000); x[::4096] = b'x' * len(x[::4096]); import time; time.sleep(1.5)"
    command = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"
    grown = peak_while(lambda: subprocess.run([sys.executable, "-c", command], check=True))
    assert grown > 200 * MB


def test_a_fork_that_has_not_become_another_program_is_not_counted_twice():
    ballast = bytearray(300 * MB)
    ballast[::4096] = b"x" * len(ballast[::4096])

    def fork() -> None:
        if (child := os.fork()) == 0:
            time.sleep(0.7)
            os._exit(0)
        os.waitpid(child, 0)

    assert peak_while(fork) < 100 * MB
