"""Which files count, and when."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lodestream.errors import SourceUnreadable
from lodestream.sources.files.listing import Clock, FileVersion, Folder, Settling, fingerprint, ignored, matches, plus
from lodestream.sources.files.store import file_store


class HandClock:
    """Wall clock and monotonic clock that move by hand."""

    def __init__(self, wall: float = 1_000_000.0) -> None:
        self.wall = wall
        self.passed = 0.0

    def clock(self) -> Clock:
        return Clock(lambda: self.passed, lambda: self.wall + self.passed, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.passed += seconds


@pytest.mark.parametrize(
    "name",
    [
        ".a.json",
        "_SUCCESS",
        "a.json.tmp",
        "a.part",
        "a.PARTIAL",
        "a.json._COPYING_",
        "a.swp",
        "a~",
        "_temporary/0/a",
        ".git/a",
    ],
)
def test_unfinished_and_hidden_names_are_ignored(name: str) -> None:
    assert ignored(name)


@pytest.mark.parametrize("name", ["a.json", "a_b.json", "2024/01/a.csv.gz", "tmp", "a.tmp.json", "temp/a"])
def test_ordinary_names_are_not_ignored(name: str) -> None:
    assert not ignored(name)


def test_a_pattern_without_slash_stays_in_the_folder() -> None:
    assert matches("a.json", "*.json")
    assert not matches("done/a.json", "*.json")
    assert not matches("a.csv", "*.json")


def test_a_pattern_with_slashes_names_folders() -> None:
    assert matches("2024/a.json", "*/*.json")
    assert not matches("a.json", "*/*.json")
    assert all(matches(path, "**/*.json") for path in ("a.json", "x/a.json", "x/y/a.json"))
    assert matches("2024/01/a.json", "2024/**")
    assert not matches("2025/01/a.json", "2024/**")


def test_the_folder_lists_oldest_first_and_only_what_counts(tmp_path: Path) -> None:
    for name, age in [("new.json", 100), ("old.json", 300), (".hidden.json", 1), ("x.csv", 1), ("sub/deep.json", 200)]:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("{}\n")
        os.utime(file, (1_000_000 - age, 1_000_000 - age))
    assert _paths(Folder(file_store(str(tmp_path), {}), "*.json")) == ["old.json", "new.json"]
    assert _paths(Folder(file_store(str(tmp_path), {}), "**/*.json")) == ["old.json", "sub/deep.json", "new.json"]


def test_a_folder_that_is_not_there_yet_is_none(tmp_path: Path) -> None:
    assert Folder(file_store(str(tmp_path / "later"), {}), "*").versions() is None


def test_names_with_spaces_and_umlauts_and_percent_signs_are_found(tmp_path: Path) -> None:
    root = tmp_path / "ein Ördner %41"
    root.mkdir()
    (root / "grüße %20 x.json").write_text("{}")
    assert _paths(Folder(file_store(str(root), {}), "*")) == ["grüße %20 x.json"]
    assert _paths(Folder(file_store(root.as_uri(), {}), "*")) == ["grüße %20 x.json"]


def test_a_name_that_is_no_text_is_refused_not_skipped(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json")).write_text("{}")
    with pytest.raises(SourceUnreadable):
        Folder(file_store(str(tmp_path), {}), "*").versions()


def test_a_file_settles_after_the_settle_time_before_our_eyes() -> None:
    hand = HandClock()
    settling = Settling(2.0, hand.clock())
    fresh = FileVersion(int(hand.wall * 1e6), "a", 10)
    assert settling.settled([fresh]) == []
    hand.sleep(1.9)
    assert settling.settled([fresh]) == []
    hand.sleep(0.2)
    assert settling.settled([fresh]) == [fresh]


def test_a_growing_file_starts_over() -> None:
    hand = HandClock()
    settling = Settling(2.0, hand.clock())
    for size in range(1, 6):
        assert settling.settled([FileVersion(int(hand.wall * 1e6), "a", size)]) == []
        hand.sleep(1.5)


def test_an_old_file_needs_only_a_second_look() -> None:
    hand = HandClock()
    settling = Settling(60.0, hand.clock())
    old = FileVersion(1, "a", 10)
    assert settling.settled([old]) == []
    hand.sleep(settling.second_look)
    assert settling.settled([old]) == [old]


def test_an_old_time_does_not_excuse_a_size_that_changes() -> None:
    hand = HandClock()
    settling = Settling(60.0, hand.clock())
    for size in range(1, 5):
        assert settling.settled([FileVersion(1, "a", size)]) == []
        hand.sleep(1.0)


def test_a_time_in_the_future_settles_by_watching() -> None:
    hand = HandClock()
    settling = Settling(2.0, hand.clock())
    future = FileVersion(int((hand.wall + 86400) * 1e6), "a", 10)
    settling.settled([future])
    hand.sleep(2.0)
    assert settling.settled([future]) == [future]


def test_an_empty_file_waits_for_its_first_byte() -> None:
    hand = HandClock()
    settling = Settling(0.0, hand.clock())
    assert settling.settled([FileVersion(1, "a", 0)]) == []
    assert settling.settled([FileVersion(1, "a", 1)]) == [FileVersion(1, "a", 1)]


def test_fingerprints_add_up_and_tell_versions_apart() -> None:
    files = [FileVersion(i, f"f{i}", i) for i in range(50)]
    assert fingerprint(files) == fingerprint(reversed(files))
    assert plus(fingerprint(files[:20]), files[20:]) == fingerprint(files)
    assert len({fingerprint([FileVersion(t, p, s)]) for t in (1, 2) for p in ("a", "b") for s in (1, 2)}) == 8


def _paths(folder: Folder) -> list[str]:
    return [file.path for file in folder.versions() or []]
