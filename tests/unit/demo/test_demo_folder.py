"""The demo's folder: claimed by one demo at a time, never someone else's."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from lodestream.demo.folder import DemoFolder, example_folder
from lodestream.errors import AnotherWriter, ConfigError, RuntimeMissing
from lodestream.planning.plan import make_plan
from lodestream.planning.project import open_project


def test_a_demo_folder_is_a_project_that_can_be_opened(tmp_path):
    folder = DemoFolder.of(tmp_path / "mit Leerzeichen ä")
    with folder.claimed():
        plan = make_plan(open_project(folder.config))
    assert "gold.daily_summary" in [table.name for table in plan.tables]
    assert not plan.blocked
    assert not (folder.path / "generator").exists()


def test_two_demos_in_one_folder_are_refused_and_the_first_is_named(tmp_path):
    with DemoFolder.of(tmp_path / "d").claimed():
        code = (
            "import sys; from pathlib import Path; from lodestream.demo.folder import DemoFolder\n"
            "from lodestream.errors import AnotherWriter\n"
            "try:\n    DemoFolder.of(Path(sys.argv[1])).claimed().__enter__()\n"
            "except AnotherWriter as error:\n    print(error)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "d")], capture_output=True, text=True, check=True
        )
    assert f"process {os.getpid()} holds it" in done.stdout
    assert "--keep DIR" in done.stdout


def test_two_demos_in_two_folders_do_not_meet(tmp_path):
    with DemoFolder.of(tmp_path / "a").claimed(), DemoFolder.of(tmp_path / "b").claimed():
        assert DemoFolder.of(tmp_path / "a").config.state_dir != DemoFolder.of(tmp_path / "b").config.state_dir


def test_a_folder_that_holds_something_else_is_refused_and_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="holds something else"), DemoFolder.of(tmp_path).claimed():
        pass
    assert [one.name for one in tmp_path.iterdir()] == ["mine.txt"]


def test_a_kept_folder_keeps_what_it_holds(tmp_path):
    folder = DemoFolder.of(tmp_path / "kept")
    with folder.claimed():
        (folder.path / ".lode" / "warehouse").mkdir()
        (folder.path / "pipeline.py").open("a").write("# mine\n")
    with folder.claimed():
        assert (folder.path / ".lode" / "warehouse").is_dir()
        assert (folder.path / "pipeline.py").read_text().endswith("# mine\n")


def test_the_default_folder_starts_empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = DemoFolder.of(None)
    with folder.claimed():
        (folder.path / ".lode" / "warehouse").mkdir()
        (folder.path / "left-over").write_text("")
    with folder.claimed():
        assert not (folder.path / ".lode" / "warehouse").exists()
        assert not (folder.path / "left-over").exists()
        assert (folder.path / "pipeline.py").read_text() == (example_folder() / "pipeline.py").read_text()


def test_a_folder_that_cannot_be_made_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(RuntimeMissing, match="cannot use the demo's folder"),
        DemoFolder.of(tmp_path / "file" / "d").claimed(),
    ):
        pass


def test_the_claim_ends_with_its_process(tmp_path):
    code = (
        "import sys, os; from pathlib import Path; from lodestream.demo.folder import DemoFolder\n"
        "DemoFolder.of(Path(sys.argv[1])).claimed().__enter__(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "d")], check=False)
    try:
        with DemoFolder.of(tmp_path / "d").claimed():
            pass
    except AnotherWriter:
        pytest.fail("a dead process still holds the folder")
