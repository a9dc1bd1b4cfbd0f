from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from lodestream.runtime.class_archive import ClassArchive
from lodestream.runtime.java import Java

COMPLETE = bytes.fromhex("a8ab0bf0") + b"classes"


@pytest.fixture
def archive(tmp_path: Path) -> ClassArchive:
    home, jar = tmp_path / "java", tmp_path / "a.jar"
    (home / "lib" / "server").mkdir(parents=True)
    (home / "lib" / "server" / "classes.jsa").touch()
    jar.write_bytes(b"jar")
    return ClassArchive(tmp_path / "classes", "spark", Java(home, 17, "test"), [jar])


def _option(archive: ClassArchive, name: str) -> str | None:
    found = [text.partition("=")[2] for text in archive.options() if text.startswith(f"-XX:{name}=")]
    return found[0] if found else None


def test_the_first_run_records_and_the_next_uses_what_it_wrote(archive: ClassArchive):
    part = _option(archive, "ArchiveClassesAtExit")
    assert part is not None
    Path(part).write_bytes(COMPLETE)
    used = _option(archive, "SharedArchiveFile")
    assert used is not None
    assert Path(used).read_bytes() == COMPLETE
    assert list(archive.folder.iterdir()) == [Path(used)]


def test_a_half_written_archive_is_never_used(archive: ClassArchive):
    part = _option(archive, "ArchiveClassesAtExit")
    assert part is not None
    Path(part).write_bytes(b"\0" * 100)
    assert _option(archive, "SharedArchiveFile") is None
    assert _option(archive, "ArchiveClassesAtExit") not in (None, part)


def test_another_jar_gets_another_archive(archive: ClassArchive):
    Path(_option(archive, "ArchiveClassesAtExit") or "").write_bytes(COMPLETE)
    assert _option(archive, "SharedArchiveFile")
    os.utime(archive.class_path[0], (1, 1))
    assert _option(archive, "SharedArchiveFile") is None


def test_archives_that_nobody_uses_go_away(archive: ClassArchive):
    archive.folder.mkdir()
    old = archive.folder / "spark-old.jsa"
    old.touch()
    os.utime(old, (1, time.time() - 40 * 24 * 3600))
    archive.options()
    assert not old.exists()


def test_trouble_costs_only_speed(archive: ClassArchive):
    archive.folder.write_text("a file where the folder should be")
    assert archive.options() == []
    (archive.java.home / "lib" / "server" / "classes.jsa").unlink()
    archive.folder.unlink()
    assert archive.options() == []  # this Java has no archive of its own and cannot make one
