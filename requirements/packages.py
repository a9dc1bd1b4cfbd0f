"""Run pip on a locked requirements file, show how far it is, and explain its failure."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path


class Refusal(Exception):
    """Says what, why and how to fix it."""

    def __init__(self, what: str, why: str, fix: str) -> None:
        super().__init__(f"{what}\n  why: {why}\n  fix: {fix}")


def pip(python: Path, wanted: Path, label: str, log_file: Path) -> None:
    """Install what the file names, by hash; its folder is also pip's scratch folder."""
    command = [python, "-I", "-m", "pip", "install", "--require-hashes", "--no-build-isolation", "--use-pep517"]
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar=off", "-r", wanted]
    # Downloads and builds go to the scratch folder: they can be watched there, and are gone with it.
    environment = {**os.environ, "TMPDIR": str(wanted.parent), "PIP_USER": "0", "PYTHONUNBUFFERED": "1"}
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with (
        log_file.open("w") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
            env=environment, start_new_session=True,
        ) as process,
        Shown(label, wanted) as shown,
    ):  # fmt: skip
        try:
            for line in process.stdout or ():
                log.write(line)
                log.flush()
                shown.heard(line)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode != 0:
        raise explained(log_file.read_text(), log_file)


class Shown:
    """Progress: one line that is rewritten on a terminal, a line now and then elsewhere."""

    def __init__(self, label: str, wanted: Path, every: float = 5) -> None:
        self.label, self.scratch, self.every = label, wanted.parent, every
        self.count = len(re.findall(r"^\w", wanted.read_text(), re.MULTILINE))
        self.seen, self.doing, self.size, self.wide = 0, "", "", sys.stderr.isatty()
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.show, daemon=True)

    def __enter__(self) -> Shown:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()
        if self.wide:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def heard(self, line: str) -> None:
        """pip's own words, which have been stable for years; unknown ones change nothing."""
        if found := re.match(r"(?:Collecting|Requirement already satisfied:) ([\w.-]+)", line):
            self.seen, self.doing, self.size = self.seen + 1, found[1], ""
        elif found := re.match(r"\s*Downloading .*\((\S+ \S+)\)", line):
            self.size = found[1]
        elif found := re.match(r"\s*Building wheel for ([\w.-]+)", line):
            self.doing, self.size = f"building {found[1]}", ""
        elif line.startswith("Installing collected packages"):
            self.doing, self.size = "writing files", ""

    def show(self) -> None:
        started = last = time.monotonic()
        while not self.done.wait(min(0.2, self.every)):
            text = f"Installing {self.label} [{min(self.seen, self.count)}/{self.count}] {self.doing}{self.arrived()}"
            now = time.monotonic()
            if self.wide:
                print(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}", end="", file=sys.stderr, flush=True)
            elif now - last >= self.every:
                print(f"{text} ({now - started:.0f} s)", file=sys.stderr, flush=True)
                last = now

    def arrived(self) -> str:
        if not self.size:
            return ""
        try:
            files = [file.stat() for file in self.scratch.glob("pip-unpack-*/*")]
        except OSError:
            return f" ({self.size})"
        newest = max(files, key=lambda file: file.st_mtime, default=None)
        return f" {newest.st_size / 1e6:.1f} MB of {self.size}" if newest else f" ({self.size})"


def explained(said: str, log_file: Path) -> Refusal:
    """What pip said, as what, why and fix."""
    errors = [line for line in said.splitlines() if line.startswith("ERROR:")]
    last = (errors or said.strip().splitlines() or ["pip said nothing"])[-1].removeprefix("ERROR: ")
    what = "InstallFailed: the Python packages could not be installed"
    if re.search(r"No space left|Disk quota", said):
        return Refusal(what, f"the disk is full ({last})", "free some space and run the command again")
    if "DO NOT MATCH THE HASHES" in said:
        return Refusal(
            what,
            "a package is not the file that the lock names: it was altered on the way, or the lock is old",
            f"do not use that package index; details in {log_file}",
        )
    if re.search(r"NewConnectionError|name resolution|ConnectTimeout|ReadTimeout|ProxyError|unreachable|refused", said):
        return Refusal(
            what,
            "the package index cannot be reached; the first start needs a network",
            "check the network and the proxy settings, or point PIP_INDEX_URL to a mirror (PIP_FIND_LINKS to a folder)",
        )
    return Refusal(what, last, f"see {log_file}")
