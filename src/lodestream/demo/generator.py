"""The producer, in a process of its own: events come from outside, as in life."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from lodestream.demo.folder import example_folder
from lodestream.errors import Final

_STOP_SECONDS = 10
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
# A little of what real streams bring, so that the dead letters have something to show.
_MALFORMED = "0.001"
_MONTH_SECONDS = 310  # a day of January every ten seconds, so that there is something to watch


class GeneratorFailed(Final):
    """The process that makes the events ended with an error."""


class Generator:
    """Taxi events to the topic: `events` at once, or `rate` a second until stopped."""

    def __init__(
        self, bootstrap: str, log: Path, *, seed: int, start_at: int, events: int | None = None, rate: float = 0
    ) -> None:
        arguments = ["--bootstrap", bootstrap, "--seed", str(seed), "--start-at", str(start_at), "--json"]
        arguments += ["--malformed", _MALFORMED]
        arguments += ["--events", str(events)] if events is not None else _paced(rate)
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "generator", *arguments],
                cwd=example_folder(),
                env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},  # which gives memory back
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is ours to pass on
                preexec_fn=_modest(),
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self) -> dict[str, Any]:
        """What it made, once it has made it all."""
        said, _ = self._process.communicate()
        if self._process.returncode != 0:
            raise self._failure()
        counts: dict[str, Any] = json.loads(said)
        return counts

    def check(self) -> None:
        """Raise when it has ended although it should go on."""
        if self._process.poll() is not None:
            raise self._failure()

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        deadline = time.monotonic() + _STOP_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        if self._process.poll() is None:
            self._process.kill()
        if self._process.stdout:
            self._process.stdout.close()
        self._process.wait()

    def _failure(self) -> GeneratorFailed:
        said = self._log.read_text(errors="replace").strip().splitlines()
        return GeneratorFailed(
            "the event generator ended",
            why=said[-1] if said else f"exit code {self._process.returncode}",
            fix=f"see {self._log}",
        )


def _paced(rate: float) -> list[str]:
    return ["--mode", "rate", "--rate", str(rate), "--lap", str(round(rate * _MONTH_SECONDS))]


def _modest() -> Any:
    """Run before the generator starts: yield the processor to the pipeline, and never outlive us."""
    library = ctypes.CDLL(None, use_errno=True)

    def prepare() -> None:
        os.nice(10)
        library.prctl(_DIE_WITH_PARENT, signal.SIGTERM)

    return prepare
