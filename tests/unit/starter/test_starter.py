"""`lode init`: all of a project, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from lodestream.config import load_config
from lodestream.errors import ConfigError, RuntimeMissing
from lodestream.planning.plan import make_plan
from lodestream.planning.project import open_project
from lodestream.starter import write, write_project
from lodestream.starter.write import pipeline_name


@pytest.mark.parametrize("name", ["shop", "my shop", "Läden & Söhne", "2024", "注文", "a__b_", "x" * 200])
def test_any_folder_name_gives_a_project_that_plans_clean(tmp_path, name):
    write_project(tmp_path / name)
    plan = make_plan(open_project(load_config(tmp_path / name)))
    assert plan.findings == ()
    assert [table.name for table in plan.tables] == ["bronze.orders_raw", "silver.orders", "gold.daily_revenue"]


@pytest.mark.parametrize(
    ("folder", "name"),
    [("My Shop", "my_shop"), ("Läden", "laden"), ("2024", "p_2024"), ("注文", "project"), ("a__b_", "a_b")],
)
def test_the_pipeline_is_named_after_the_folder(folder, name):
    assert pipeline_name(folder) == name


def test_no_placeholder_is_left(tmp_path):
    for file in write_project(tmp_path / "shop"):
        assert "starter_name" not in file.read_text()


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "empty").mkdir()
    write_project(tmp_path / "empty")
    assert (tmp_path / "empty" / "pipeline.py").is_file()


def test_a_folder_with_anything_in_it_is_refused_and_left_alone(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is not empty"):
        write_project(tmp_path / "full")
    assert [one.name for one in (tmp_path / "full").iterdir()] == ["mine.txt"]


def test_a_file_of_that_name_is_refused(tmp_path):
    (tmp_path / "shop").write_text("mine")
    with pytest.raises(ConfigError, match="is a file"):
        write_project(tmp_path / "shop")
    assert (tmp_path / "shop").read_text() == "mine"


def test_a_disk_that_fills_up_leaves_nothing(tmp_path, monkeypatch):
    real = Path.write_text
    calls = 0

    def fills_up(self, *arguments, **options):
        nonlocal calls
        calls += 1
        if calls > 3:
            raise OSError(28, "No space left on device", str(self))
        return real(self, *arguments, **options)

    monkeypatch.setattr(write.Path, "write_text", fills_up)
    with pytest.raises(RuntimeMissing, match="cannot write the project") as caught:
        write_project(tmp_path / "shop")
    assert "No space left" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_what_to_do_next(tmp_path, monkeypatch, capfd):
    from lodestream.cli.main import run_command

    monkeypatch.chdir(tmp_path)
    assert run_command(["init", "mein Laden"]) == 0
    assert "cd 'mein Laden'" in capfd.readouterr().out
    assert run_command(["init", "mein Laden"]) == 2
