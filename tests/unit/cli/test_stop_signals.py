"""Ctrl-C: at once while starting, cleanly while running, at once again on the second."""

from __future__ import annotations

import os
import signal
import time

import pytest

from lodestream.cli.stop_signals import StopSignals


def heard(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(0.01)  # Python runs handlers between two instructions of the main thread


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_while_starting_it_interrupts_at_once(number):
    with pytest.raises(KeyboardInterrupt), StopSignals():
        heard(number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_while_running_the_batch_may_end(number):
    with StopSignals() as signals:
        signals.running = True
        heard(number)
        assert signals.stop.is_set()


def test_a_second_one_does_not_wait():
    with StopSignals() as signals:
        signals.running = True
        heard(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            heard(signal.SIGINT)


def test_the_handlers_of_before_come_back():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with StopSignals():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_ctrl_c_is_told_from_a_supervisor():
    for number, interrupted in ((signal.SIGINT, True), (signal.SIGTERM, False)):
        with StopSignals() as signals:
            signals.running = True
            heard(number)
            assert signals.interrupted is interrupted
