"""Faster Java starts: the classes that one run loaded are kept, and the next run maps them ready-made.

Java calls this class data sharing. It halves the processor time of a Spark start. The first run records and writes
its archive as it ends; a later start finds the finished file and puts it to use. Java itself checks that an archive
fits its version and the jars, and goes without when it does not.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lodestream.runtime.java import Java, java_environment

_log = logging.getLogger(__name__)
_MAGIC = bytes.fromhex("a8ab0bf0")  # Java writes the header last, so a file that begins with this is complete
_LEAST_FREE = 1024 * 1024 * 1024
_UNUSED_SECONDS = 30 * 24 * 3600
_QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")  # what cannot be archived, class by class, is no news


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive of one program on one Java and one class path."""

    folder: Path
    program: str
    java: Java
    class_path: Sequence[Path]  # jars, or folders of jars

    def options(self) -> list[str]:
        """Java options that use the archive, or record it when there is none. Never fails: this is only speed."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._tidy()
            return [*_QUIET, *self._use_or_record()]
        except (OSError, subprocess.SubprocessError) as error:
            _log.info("classes.unused program=%s why=%s", self.program, error)
            return []

    def _use_or_record(self) -> list[str]:
        base = self._base()
        archive = self.folder / f"{self.program}-{self._fingerprint()}.jsa"
        if archive.exists() or self._adopt(archive):
            os.utime(archive)
            for surplus in self.folder.glob(f"{archive.stem}.*.part"):  # of runs that recorded side by side
                surplus.unlink(missing_ok=True)
            return [f"-XX:SharedArchiveFile={':'.join(map(str, [*base, archive]))}"]
        if shutil.disk_usage(self.folder).free < _LEAST_FREE:
            return []
        part = archive.with_suffix(f".{uuid.uuid4().hex[:8]}.part")
        return [*(f"-XX:SharedArchiveFile={path}" for path in base), f"-XX:ArchiveClassesAtExit={part}"]

    def _adopt(self, archive: Path) -> bool:
        for part in self.folder.glob(f"{archive.stem}.*.part"):
            with part.open("rb") as content:
                complete = content.read(len(_MAGIC)) == _MAGIC
            if complete:
                part.replace(archive)
                return True
        return False

    def _base(self) -> list[Path]:
        """The archive of Java's own classes, which ours builds on. The wheel comes without: made once."""
        if (self.java.home / "lib" / "server" / "classes.jsa").exists():
            return []
        base = self.folder / f"java-{_digest(_release(self.java))}.jsa"
        if not base.exists():
            part = base.with_suffix(f".{uuid.uuid4().hex[:8]}.part")
            command = [str(self.java.executable), "-Xshare:dump", f"-XX:SharedArchiveFile={part}"]
            subprocess.run(command, capture_output=True, check=True, timeout=120, env=java_environment(os.environ))
            part.replace(base)
        os.utime(base)
        return [base]

    def _fingerprint(self) -> str:
        # Java refuses an archive when a jar has another time or size, so a jar that was fetched again needs a new one.
        facts = [(str(path), (found := path.stat()).st_mtime_ns, found.st_size) for path in self.class_path]
        return _digest(f"{_release(self.java)}{facts}")

    def _tidy(self) -> None:
        for file in self.folder.iterdir():
            if time.time() - file.stat().st_mtime > _UNUSED_SECONDS:
                file.unlink(missing_ok=True)


def _release(java: Java) -> str:
    release = java.home / "release"
    return f"{java.executable}{release.read_text(encoding='utf-8') if release.exists() else java.version}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
