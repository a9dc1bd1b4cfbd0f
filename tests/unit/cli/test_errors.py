"""Every end of a command: its exit code, what a person reads, what a program reads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lodestream import errors
from lodestream.cli.call import LodeCommand
from lodestream.cli.main import lode as lode_group


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Add a command `fail` that ends with the given exception."""

    def add(error: BaseException) -> None:
        def fail() -> None:
            raise error

        command = LodeCommand("fail", callback=fail)
        monkeypatch.setitem(lode_group.commands, "fail", command)

    return add


def test_an_error_reads_what_why_fix(lode, folder, raising):
    raising(errors.AnotherWriter("silver.trips has another writer", why="run 7 published", fix="stop one of the two"))
    ended = lode("fail")
    assert ended.code == 5
    assert ended.out == ""
    assert ended.err == (
        "AnotherWriter: silver.trips has another writer\n  why: run 7 published\n  fix: stop one of the two\n"
    )


def test_an_error_as_json_is_one_object_on_standard_output(lode, folder, raising):
    raising(errors.SourceGap("a gap", why="records are gone", fix="lode run --accept-gap bronze.trips_raw"))
    ended = lode("fail", "--json")
    assert ended.code == 6
    assert ended.err == ""
    assert ended.json == {
        "error": {
            "name": "SourceGap",
            "what": "a gap",
            "why": "records are gone",
            "fix": "lode run --accept-gap bronze.trips_raw",
            "exit_code": 6,
        }
    }


def test_the_users_own_traceback_comes_before_our_line(lode, folder, raising):
    raising(
        errors.UserCodeError("Traceback\n  File x\nValueError: y\npipeline.py could not be loaded", why="it raised")
    )
    assert lode("fail").err.splitlines() == [
        "Traceback",
        "  File x",
        "ValueError: y",
        "UserCodeError: pipeline.py could not be loaded",
        "  why: it raised",
    ]


def test_brackets_in_an_error_are_not_taken_for_markup(lode, folder, raising):
    raising(errors.ConfigError("[bold]x[/] in [profiles.local.kafka]"))
    assert "[bold]x[/] in [profiles.local.kafka]" in lode("fail").err


def test_an_unexpected_error_is_short_and_its_traceback_is_on_disk(lode, folder, raising):
    raising(ZeroDivisionError("boom"))
    ended = lode("fail")
    assert ended.code == 1
    assert ended.err.startswith("Unexpected: ZeroDivisionError: boom\n")
    assert "Traceback" not in ended.err
    (report,) = (folder / ".lode" / "logs").glob("crash-*.log")
    assert str(report) in ended.err
    assert "Traceback" in report.read_text()
    assert "lode fail" in report.read_text()


def test_the_report_goes_to_the_projects_folder_from_below_it(lode, folder, raising, monkeypatch):
    (folder / "lode.toml").write_text("")
    below = folder / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    raising(ZeroDivisionError("boom"))
    lode("fail")
    assert list((folder / ".lode" / "logs").glob("crash-*.log"))
    assert not (below / ".lode").exists()


def test_debug_shows_the_traceback(lode, folder, raising):
    raising(ZeroDivisionError("boom"))
    assert "Traceback" in lode("--debug", "fail").err


def test_an_unexpected_error_as_json(lode, folder, raising):
    raising(ZeroDivisionError("boom"))
    ended = lode("fail", "--json")
    assert ended.code == 1
    assert ended.json["error"]["name"] == "Unexpected"
    assert ended.json["error"]["what"] == "ZeroDivisionError: boom"


def test_ctrl_c_exits_130_without_a_traceback(lode, folder, raising):
    raising(KeyboardInterrupt())
    ended = lode("fail")
    assert (ended.code, ended.out, ended.err) == (130, "", "\nstopped\n")


def test_a_wrong_word_exits_2_and_names_the_nearest(lode, folder):
    ended = lode("pln")
    assert ended.code == 2
    assert "plan" in ended.err
    assert "fix: lode --help" in ended.err


def test_a_wrong_option_as_json(lode, folder):
    ended = lode("status", "--jsom", "--json")
    assert ended.code == 2
    assert ended.json["error"]["name"] == "UsageError"
    assert ended.json["error"]["fix"] == "lode status --help"


def test_a_project_folder_that_does_not_exist_is_refused(lode, folder):
    ended = lode("status", "--project", "nowhere")
    assert ended.code == 2
    assert "nowhere" in ended.err


def test_every_error_of_the_configuration_is_shown(lode, folder):
    (folder / "lode.toml").write_text(
        '[profiles.local.kafka]\nbootstrp = "x"\n[profiles.local.engine]\ntarget = "soon"\n'
    )
    ended = lode("plan", "--json")
    assert ended.code == 2
    assert len(ended.json["error"]["problems"]) == 2
    shown = lode("plan").err
    assert shown.startswith("ConfigError: 2 problems in the configuration\n")
    assert "did you mean bootstrap?" in shown


def test_a_reader_that_goes_away_is_no_error(folder: Path):
    """`lode events | head -1` closes the pipe early."""
    command = f"{sys.executable} -m lodestream.cli --help | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.LodeError, 1),
        (errors.ConfigError, 2),
        (errors.DeclarationError, 2),
        (errors.ContractError, 2),
        (errors.RuntimeMissing, 3),
        (errors.ContractViolation, 4),
        (errors.AuditFailed, 4),
        (errors.AnotherWriter, 5),
        (errors.SourceRecreated, 6),
        (errors.BrokerUnavailable, 75),
    ],
)
def test_exit_codes_are_the_documented_ones(lode, folder, raising, error, code):
    raising(error("x"))
    assert lode("fail").code == code
    assert f"\n    {code} " in lode("--help").out
