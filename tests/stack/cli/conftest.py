"""`lode` in a process of its own, as a shell starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Lode:
    """Runs commands in one folder."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.environment = {**os.environ, "COLUMNS": "200", **(environment or {})}

    def __call__(self, *arguments: str | Path, timeout: float = 240) -> Ended:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=timeout)
        return Ended(process.returncode, out, err)

    def start(self, *arguments: str | Path, given: str | None = None) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "lodestream.cli", *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            stdin=None if given is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if given is not None and process.stdin is not None:
            process.stdin.write(given)
            process.stdin.close()
            process.stdin = None
        return process


@pytest.fixture(scope="module")
def lode(tmp_path_factory: pytest.TempPathFactory) -> Lode:
    folder = tmp_path_factory.mktemp("cli") / "mit Leerzeichen ä"
    folder.mkdir()
    return Lode(folder)


def processes_in(folder: Path) -> list[str]:
    """Command lines of processes that work in a folder: what a clean end must not leave."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        line = " ".join(process.info["cmdline"] or [])
        if process.pid != os.getpid() and (
            str(folder) in line or str(process.info["cwd"] or "").startswith(str(folder))
        ):
            found.append(line)
    return found


@pytest.fixture(scope="session")
def left_over() -> Any:
    return processes_in
