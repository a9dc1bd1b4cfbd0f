"""The generator as a process of its own, ended by its user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "nyc_taxi"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_interrupt_ends_an_endless_stream_with_a_summary(unbuffered):
    process = subprocess.Popen(
        [sys.executable, "-m", "generator", "--mode", "rate", "--rate", "500", "--json"],
        cwd=EXAMPLE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env={**os.environ, "PYTHONPATH": "", "PYTHONUNBUFFERED": unbuffered},
    )
    first = process.stdout.readline()
    process.terminate()
    out, err = process.communicate(timeout=10)
    assert process.returncode == 0
    assert json.loads(err)["events"] == len((first + out).splitlines())
