"""`./dev` itself: which Python it takes, and what it says when there is none."""

from __future__ import annotations

import sys

OLD = 'case "$*" in *version_info*) echo {version} ;; *) exit 0 ;; esac'


def test_python_3_10_alone_gets_a_clear_message(dev, programs, add_program, clone):
    add_program("python3", OLD.format(version="3.10.13"))
    done = dev("demo", programs=programs)
    assert done.returncode == 3
    assert done.stderr == (
        "PythonMissing: Lodestream needs Python 3.11 or newer\n"
        "  why: python3 is Python 3.10.13\n"
        "  fix: install Python 3.11, 3.12 or 3.13 (on Debian and Ubuntu also its -venv package),"
        " or set LODE_PYTHON to one\n"
    )
    assert not (clone / ".venv").exists()


def test_no_python_at_all_gets_a_clear_message(dev, programs, add_program):
    done = dev("demo", programs=programs)
    assert done.returncode == 3
    assert "why: there is no python3 on PATH" in done.stderr


def test_an_older_python3_is_passed_over_for_a_newer_one(dev, programs, add_program):
    add_program("python3", OLD.format(version="3.9.18"))
    add_program(
        "python3.12",
        f'case "$*" in *install.py*) echo chosen "$@" >&2; exit 9 ;; esac; exec {sys.executable} "$@"',
    )
    done = dev("demo", programs=programs)
    assert done.returncode == 9
    assert "chosen" in done.stderr


def test_a_python_without_venv_is_named(dev, programs, add_program):
    add_program("python3", 'case "$*" in *version_info*) echo 3.11.2 ;; *) exit 1 ;; esac')
    done = dev("demo", programs=programs)
    assert done.returncode == 3
    assert "why: python3 (3.11.2) comes without venv and ensurepip" in done.stderr
    assert "-venv package" in done.stderr


def test_lode_python_is_asked_first(dev, programs, add_program, tmp_path):
    add_program("mine", f'case "$*" in *install.py*) exit 9 ;; esac; exec {sys.executable} "$@"')
    add_program("python3", "exit 1")
    assert dev("demo", programs=programs, LODE_PYTHON="mine").returncode == 9


def test_help_needs_no_python(dev, programs, add_program):
    done = dev("help", programs=programs)
    assert done.returncode == 0
    for command in ("demo", "test", "check", "bench", "lode", "lock", "setup"):
        assert f"\n  {command} " in done.stdout


def test_an_unknown_command_exits_2(dev, programs, add_program):
    done = dev("dmeo", programs=programs)
    assert done.returncode == 2
    assert 'there is no command "dmeo"' in done.stderr


def test_bench_lists_and_refuses_what_is_not_there(dev, clone):
    (clone / "benchmarks").mkdir()
    (clone / "benchmarks" / "latency.py").write_text("")
    assert "  latency\n" in dev("bench").stdout
    done = dev("bench", "speed")
    assert done.returncode == 2
    assert 'there is no benchmark "speed"' in done.stderr


def test_lock_without_uv_says_how_to_get_it(dev, programs, add_program):
    add_program("python3", f'exec {sys.executable} "$@"')
    done = dev("lock", programs=programs)
    assert done.returncode == 3
    assert "fix: pip install uv" in done.stderr
