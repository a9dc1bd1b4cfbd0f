"""A reference file is known by its content: every change of it is seen, and none is taken for another."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest

from lodestream.errors import SourceUnsettled
from lodestream.pipeline.sources import ReferenceData
from lodestream.sources.reference import file as reference_module
from lodestream.sources.reference.file import ReferenceFile


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The times that a file is given are those of a second and more."""
    for name, seconds in {"_SETTLE": 0.4, "_LOOK": 0.02, "_PATIENCE": 1.0}.items():
        monkeypatch.setattr(reference_module, name, seconds)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "zones.csv"
    made.write_text("zone\nA\n")
    return made


def reference(file: Path) -> ReferenceFile:
    return ReferenceFile(cast(Any, None), ReferenceData(str(file), format="csv"), None)


def waiting(source: ReferenceFile, since: Any) -> int:
    latest = source.latest()
    assert latest is not None
    return source.pending(since, latest)


def test_a_line_that_is_added_is_new_at_the_next_look(file: Path) -> None:
    source = reference(file)
    read = source.latest()
    assert waiting(source, read) == 0
    with file.open("a") as more:
        more.write("B\n")
    assert waiting(source, read) == 1


def test_a_copy_that_brings_the_old_time_and_size_along_is_new(file: Path) -> None:
    os.utime(file, (1_000_000, 1_000_000))
    time.sleep(0.02)
    source = reference(file)
    source.latest()
    source._hashed = (source._version(), (read := source.latest() or {})["sha256"])  # as it is two seconds later
    file.write_text("zone\nB\n")
    os.utime(file, (1_000_000, 1_000_000))
    assert waiting(source, read) == 1


def test_a_file_that_has_just_been_written_is_not_known_by_its_time_alone(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two writes within one tick of the file system's clock look the same from outside."""
    source, tick = reference(file), reference(file)._version()
    monkeypatch.setattr(source, "_version", lambda: tick)
    read = source.latest()
    file.write_text("zone\nB\n")
    assert waiting(source, read) == 1
    monkeypatch.setattr(source, "_version", lambda: (10**9, 10**9, *tick[2:]))
    source.latest()
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("an old file is not read at every look"))
    source.latest()


def test_what_is_written_while_spark_reads_is_not_published_as_what_was_there_before(file: Path) -> None:
    source = reference(file)
    to = source.latest() or {}
    source.confirm(to)
    file.write_text("zone\nC\n")
    with pytest.raises(SourceUnsettled, match="changed while it was read"):
        source.confirm(to)
    to = source.latest() or {}
    source.confirm(to)
    file.unlink()
    with pytest.raises(SourceUnsettled):
        source.confirm(to)


def slowly(file: Path, lines: int, pause: float) -> threading.Thread:
    def write() -> None:
        with file.open("w") as out:
            for number in range(lines):
                out.write(f"{number}\n")
                out.flush()
                time.sleep(pause)

    thread = threading.Thread(target=write)
    thread.start()
    return thread


def test_a_file_that_is_written_slowly_is_taken_when_it_is_whole(file: Path) -> None:
    source = reference(file)
    writer = slowly(file, 8, 0.05)
    time.sleep(0.08)
    taken = source.latest() or {}
    assert not writer.is_alive() or file.read_text().count("\n") == 8
    writer.join()
    assert taken["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_file_that_never_comes_to_rest_is_tried_again_later(file: Path) -> None:
    writer = slowly(file, 40, 0.05)
    with pytest.raises(SourceUnsettled, match="is being written"):
        reference(file).latest()
    writer.join()


def test_a_file_of_a_server_whose_clock_is_ahead_is_taken(file: Path) -> None:
    os.utime(file, (time.time() + 3600, time.time() + 3600))
    assert reference(file).latest() is not None


def test_other_content_and_back_while_spark_reads_is_not_published(file: Path) -> None:
    source = reference(file)
    to, before = source.latest() or {}, file.read_text()
    file.write_text("zone\nB\n")
    file.write_text(before)
    with pytest.raises(SourceUnsettled):
        source.confirm(to)


def test_other_content_under_the_same_time_is_not_published(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, tick = reference(file), reference(file)._version()
    monkeypatch.setattr(source, "_version", lambda: tick)
    to = source.latest() or {}
    file.write_text("zone\nB\n")
    with pytest.raises(SourceUnsettled):
        source.confirm(to)
