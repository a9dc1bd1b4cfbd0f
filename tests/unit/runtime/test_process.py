"""A process that was written down is told from every other one."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace

import psutil

from lodestream.runtime.process import ProcessId


def test_this_process_lives() -> None:
    own = ProcessId.own()
    assert own.near
    assert not own.gone
    assert own == ProcessId.own()


def test_a_process_ends_with_its_life_and_not_when_its_parent_notices() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    child = ProcessId.of(process.pid)
    assert not child.gone
    process.kill()
    deadline = time.monotonic() + 5
    while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.01)
    assert child.gone, "nobody has waited for it yet"
    process.wait()
    assert child.gone


def test_a_number_that_was_given_again_is_another_process() -> None:
    assert replace(ProcessId.own(), began=1.0).gone


def test_nobody_here_knows_of_a_process_elsewhere() -> None:
    far = replace(ProcessId.own(), machine="far", pid=1_999_999)
    assert not far.near
    assert not far.gone


def test_a_clock_that_is_set_anew_makes_no_process_another(monkeypatch) -> None:
    own = ProcessId.own()
    monkeypatch.setattr(psutil.Process, "create_time", lambda _: 1.0)
    assert not own.gone
