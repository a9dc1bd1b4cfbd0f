"""A copy of the entry script and its installer, with programs that stand in for Python where that is the point."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[3]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """`./dev` and what it calls, in a folder with a space and non-ASCII letters."""
    made = tmp_path / "ein Klön"
    (made / "requirements").mkdir(parents=True)
    shutil.copy(HOME / "dev", made / "dev")
    for name in ("install.py", "packages.py", "lock.py", "run.lock", "dev.lock"):
        shutil.copy(HOME / "requirements" / name, made / "requirements" / name)
    return made


@pytest.fixture
def dev(clone: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run ./dev under dash from another folder, with only the given programs on PATH."""

    def run(*arguments: str, programs: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        path = f"{programs}:/nonexistent" if programs else os.environ["PATH"]
        return subprocess.run(
            [shutil.which("dash") or "/bin/sh", str(clone / "dev"), *arguments],
            cwd=tmp_path,
            env={"PATH": path, "HOME": str(tmp_path), "LC_ALL": "C.UTF-8", **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A PATH of its own: the usual tools, and no Python until a test adds one."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for tool in ("dirname", "basename", "cat", "printf", "sh", "readlink"):
        if found := shutil.which(tool):
            (folder / tool).symlink_to(found)
    return folder


@pytest.fixture
def add_program(programs: Path) -> Callable[[str, str], None]:
    def add(name: str, script: str) -> None:
        file = programs / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    return add
