"""Running commands as a shell would, without a new process each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lodestream.cli.main import run_command


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one object it must be."""
        return json.loads(self.out)


@pytest.fixture
def lode(capfd: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    def run(*arguments: str | Path) -> Ended:
        capfd.readouterr()
        code = run_command([str(one) for one in arguments])
        out, err = capfd.readouterr()
        return Ended(code, out, err)

    return run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a name that tools trip over."""
    made = tmp_path / "my tests äöü"
    made.mkdir()
    monkeypatch.chdir(made)
    return made
