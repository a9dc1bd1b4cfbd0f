"""Progress: bars on a terminal, a line now and then elsewhere, nothing when quiet."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from lodestream.cli.progress import PlainProgress, RichProgress, amount
from lodestream.cli.screen import Screen
from lodestream.runtime.progress import SilentProgress


@pytest.fixture
def log() -> Console:
    return Console(file=io.StringIO(), force_terminal=False, width=100)


def said(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_short_step_leaves_no_line(log):
    with PlainProgress(log, silent=5).step("Starting Spark"):
        pass
    assert said(log) == ""


def test_a_long_step_says_how_far_it_is_and_how_long_it_took(log):
    with PlainProgress(log, silent=0.02, between=0.02).step("Fetching 3 jars", 10_000_000, "bytes") as step:
        step.advance(5_000_000)
        time.sleep(0.2)
    lines = said(log).splitlines()
    assert "Fetching 3 jars ... 5.0 MB of 10.0 MB" in lines
    assert lines[-1] == "Fetching 3 jars: 0 s"


def test_an_exception_passes_through(log):
    with pytest.raises(ZeroDivisionError), PlainProgress(log).step("x"):
        raise ZeroDivisionError


def test_a_terminal_shows_a_bar_and_clears_it():
    terminal = Console(file=io.StringIO(), force_terminal=True, width=100)
    with RichProgress(terminal).step("Fetching 3 jars", 10, "jars") as step:
        step.advance(4)
        time.sleep(0.3)
    assert "Fetching 3 jars" in said(terminal)
    assert "4 of 10 jars" in said(terminal)


def test_steps_inside_and_beside_each_other_share_the_terminal():
    import threading

    terminal = Console(file=io.StringIO(), force_terminal=True, width=100)
    progress = RichProgress(terminal)

    def work() -> None:
        for _ in range(20):
            with progress.step("outer"), progress.step("inner", 1):
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with progress.step("again"):
        pass
    assert "again" in said(terminal)


def test_quiet_shows_nothing():
    assert isinstance(Screen(json=False, quiet=True).progress(), SilentProgress)


@pytest.mark.parametrize(
    ("done", "total", "unit", "text"),
    [(0, None, "", ""), (1500, 3000, "bytes", "1.5 kB of 3.0 kB"), (1200, 4000, "rows", "1,200 of 4,000 rows")],
)
def test_amounts(done, total, unit, text):
    assert amount(done, total, unit) == text
