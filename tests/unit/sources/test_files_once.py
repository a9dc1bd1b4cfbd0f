"""Each file exactly once: whatever comes when, however sliced, restarted, rolled back. Rows are files: no Spark."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodestream import Files
from lodestream.errors import ConfigError, SourceGap, SourceRecreated, SourceRewritten, SourceUnsettled
from lodestream.flows.intake import SourceIntake
from lodestream.sources.files import position as positions
from lodestream.sources.files.listing import Clock, FileVersion
from lodestream.sources.files.reading import FilesSource
from lodestream.tables.snapshot import Stamp


class Bronze:
    """A table as far as the source knows it: snapshots of positions, and the files that their rows name."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.snapshots: list[tuple[Any, list[FileVersion]]] = []
        self.asked = 0
        self.source = self.start()

    def start(self, **options: str) -> FilesSource:
        declared = Files(str(self.root), settle="0 s", options=options)
        passed = iter(range(10**9))
        clock = Clock(monotonic=lambda: float(next(passed)) * 100, sleep=lambda _: None)
        return FilesSource(cast(Any, None), declared, self.files, clock=clock)

    def files(self) -> dict[str, FileVersion]:
        self.asked += 1
        return {file.path: file for _, files in self.snapshots for file in files}

    def rows(self) -> list[str]:
        return [file.path for _, files in self.snapshots for file in files]

    def step(self, rows: int = 10**9, publish: bool = True) -> bool:
        latest = self.source.latest()
        assert latest is not None
        since = self.snapshots[-1][0] if self.snapshots else self.source.start(latest)
        self.source.check(since, latest)
        to = json.loads(json.dumps(self.source.cap(since, latest, rows)))
        assert (self.source.pending(since, to) > 0) == (to != since)
        if to == since:
            assert self.source.pending(since, latest) == 0
            return False
        if publish:
            self.snapshots.append((to, positions.batch(since, to)))
        return True

    def drain(self) -> None:
        while self.step():
            pass


@pytest.fixture
def bronze(tmp_path: Path) -> Bronze:
    return Bronze(tmp_path)


def put(root: Path, name: str, modified: float = 1_000_000.0, content: str = "x\n") -> Path:
    file = root / name
    file.write_text(content)
    os.utime(file, (modified, modified))
    return file


events = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 6), st.integers(1, 3)),
        st.tuples(st.just("step"), st.integers(1, 4), st.booleans()),
        st.tuples(st.just("restart"), st.just(0), st.just(0)),
        st.tuples(st.just("rollback"), st.integers(1, 3), st.just(0)),
        st.tuples(st.just("archive"), st.integers(0, 9), st.just(0)),
    ),
    max_size=25,
)


@given(events)
def test_every_file_is_read_exactly_once_in_any_order_and_any_slicing(story: list[tuple[str, int, Any]]) -> None:
    root = Path(tempfile.mkdtemp())
    try:
        table, made, archived = Bronze(root), [], set()
        for number, (event, amount, extra) in enumerate(story):
            if event == "put":
                made.append(f"{(number * 7) % 25:02}.json")
                put(root, made[-1], 1_000_000.0 + amount, "x\n" * extra)
            elif event == "step":
                table.step(amount, publish=extra)
            elif event == "restart":
                table.source = table.start()
            elif event == "rollback":
                undone = {file.path for _, files in table.snapshots[-amount:] for file in files}
                if not undone & archived:
                    del table.snapshots[-amount:]
            elif table.rows():
                archived.add(table.rows()[amount % len(table.rows())])
                (root / table.rows()[amount % len(table.rows())]).unlink(missing_ok=True)
        table.drain()
        assert sorted(table.rows()) == sorted(made)
    finally:
        shutil.rmtree(root)


def test_a_restart_over_an_untouched_folder_asks_the_table_nothing(bronze: Bronze) -> None:
    for number in range(30):
        put(bronze.root, f"{number}.json", 1_000_000.0 + number)
    bronze.drain()
    put(bronze.root, "new.json", 1_000_100.0)
    bronze.source = bronze.start()
    bronze.drain()
    assert bronze.asked == 0
    assert len(bronze.rows()) == 31


def test_a_late_file_with_an_old_time_is_read_after_asking_the_table(bronze: Bronze) -> None:
    put(bronze.root, "b.json", 2_000_000.0)
    bronze.drain()
    put(bronze.root, "a.json", 1_000_000.0)
    bronze.source = bronze.start()
    bronze.drain()
    assert bronze.rows() == ["b.json", "a.json"]
    assert bronze.asked == 1


@pytest.mark.parametrize("restart", [True, False])
@pytest.mark.parametrize(("modified", "content"), [(1_000_000.0, "xy\n"), (1_000_001.0, "x\n"), (1_000_000.0, "")])
def test_a_file_that_changes_after_it_was_read_stops_the_flow(
    bronze: Bronze, restart: bool, modified: float, content: str
) -> None:
    put(bronze.root, "a.json")
    put(bronze.root, "b.json", 1_000_005.0)
    bronze.drain()
    put(bronze.root, "a.json", modified, content)
    bronze.source = bronze.start() if restart else bronze.source
    with pytest.raises(SourceRewritten, match=r"a\.json changed after it was read"):
        bronze.step()


def test_lines_added_to_a_file_that_was_read_wake_an_idle_flow_and_stop_it(bronze: Bronze) -> None:
    """Without another file nothing is new, and nobody would look at those that were read."""
    file = put(bronze.root, "a.json")
    bronze.drain()
    lookout, known = SourceIntake([bronze.source]), {"files": bronze.snapshots[-1][0]}
    assert not lookout.news(known, lookout.look() or {})
    with file.open("a") as more:
        more.write("one more line\n")
    latest = lookout.look()
    assert latest is not None
    assert lookout.news(known, latest)
    with pytest.raises(SourceRewritten, match=r"a\.json changed after it was read"):
        lookout.span(Stamp("bronze.a", "run", 1, known, None), latest, 100)


def test_an_accepted_change_counts_as_read_also_after_a_restart(bronze: Bronze) -> None:
    put(bronze.root, "a.json")
    put(bronze.root, "gone.json")
    bronze.drain()
    put(bronze.root, "a.json", 3_000_000.0, "other\n")
    latest = bronze.source.latest()
    assert latest is not None
    bronze.snapshots.append((bronze.source.accept(bronze.snapshots[-1][0], latest), []))
    put(bronze.root, "new.json", 2_000_000.0)
    (bronze.root / "gone.json").unlink()
    bronze.source = bronze.start()
    bronze.drain()
    assert bronze.rows() == ["a.json", "gone.json", "new.json"]
    put(bronze.root, "a.json", 4_000_000.0, "again\n")
    with pytest.raises(SourceRewritten):
        bronze.step()


def test_rows_deleted_from_the_table_never_make_a_file_new_again(bronze: Bronze) -> None:
    for number in range(4):
        put(bronze.root, f"{number}.json", 1_000_000.0 + number)
    bronze.drain()
    bronze.snapshots[-1][1].pop(1)
    bronze.source = bronze.start()
    bronze.drain()
    assert bronze.rows() == ["0.json", "2.json", "3.json"]
    (bronze.root / "0.json").unlink()
    bronze.source = bronze.start()
    with pytest.raises(SourceRewritten, match=r"not known whether .*1\.json was read"):
        bronze.step()
    latest = bronze.source.latest()
    assert latest is not None
    bronze.snapshots.append((bronze.source.accept(bronze.snapshots[-1][0], latest), []))
    (bronze.root / "2.json").unlink()
    bronze.source = bronze.start()
    bronze.drain()
    assert bronze.rows() == ["0.json", "2.json", "3.json"]


def test_another_folder_is_another_source(bronze: Bronze, tmp_path_factory: pytest.TempPathFactory) -> None:
    put(bronze.root, "a.json")
    bronze.drain()
    bronze.root = tmp_path_factory.mktemp("other")
    put(bronze.root, "a.json")
    bronze.source = bronze.start()
    with pytest.raises(SourceRecreated):
        bronze.step()


def test_a_batch_is_capped_by_rows_and_by_files(bronze: Bronze) -> None:
    for number in range(10):
        put(bronze.root, f"{number}.json", 1_000_000.0 + number, "x" * 2500)
    bronze.step(rows=30)
    assert bronze.rows() == ["0.json", "1.json", "2.json"]
    bronze.step(rows=1)
    assert bronze.rows()[3:] == ["3.json"]
    bronze.source = bronze.start(files_per_batch="2")
    bronze.step()
    assert bronze.rows()[4:] == ["4.json", "5.json"]


def test_a_batch_that_covers_the_listing_knows_as_of_when(bronze: Bronze) -> None:
    put(bronze.root, "a.json")
    put(bronze.root, "b.json")
    latest = bronze.source.latest()
    assert latest is not None
    since = bronze.source.start(latest)
    assert bronze.source.asof(bronze.source.cap(since, latest, 1)) is None
    assert bronze.source.asof(bronze.source.cap(since, latest, 10)) is not None


def test_a_file_that_vanishes_or_grows_before_it_is_read_is_noticed(bronze: Bronze) -> None:
    put(bronze.root, "a.json")
    latest = bronze.source.latest()
    assert latest is not None
    since = bronze.source.start(latest)
    to = bronze.source.cap(since, latest, 10)
    put(bronze.root, "a.json", content="grown\n")
    with pytest.raises(SourceUnsettled):
        bronze.source.read(since, to)
    (bronze.root / "a.json").unlink()
    with pytest.raises(SourceGap, match=r"a\.json disappeared"):
        bronze.source.read(since, to)


def test_a_folder_that_does_not_exist_yet_has_no_position(tmp_path: Path) -> None:
    assert Bronze(tmp_path / "later").source.latest() is None


def test_the_first_look_waits_for_the_second_so_that_once_is_enough(tmp_path: Path) -> None:
    put(tmp_path, "a.json")
    source = FilesSource(cast(Any, None), Files(str(tmp_path), settle="1 s"), dict)
    latest = source.latest()
    assert latest is not None
    assert latest["files"] == 1


def test_a_slow_listing_is_followed_by_a_rest() -> None:
    root = Path(tempfile.mkdtemp())
    try:
        for number in range(3_000):
            (root / f"{number}.json").write_bytes(b"x")
        source = FilesSource(cast(Any, None), Files(str(root), settle="0 s"), dict)
        assert (source.latest() or {})["files"] == 3_000
        (root / "next.json").write_bytes(b"x")
        assert (source.latest() or {})["files"] == 3_000, "the next listing is not due yet"
    finally:
        shutil.rmtree(root)


def test_a_misspelt_option_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="endpont"):
        FilesSource(cast(Any, None), Files(str(tmp_path), options={"endpont": "x"}), dict)
