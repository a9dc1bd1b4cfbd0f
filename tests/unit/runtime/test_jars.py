from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from lodestream.config import RuntimeConfig
from lodestream.errors import RuntimeMissing
from lodestream.runtime.cache import cache_dir
from lodestream.runtime.jars import ensure, unverified
from lodestream.runtime.lock import Jar, locked_jars, maven_path
from lodestream.runtime.progress import Progress, SilentProgress, Step

ENSURE = """
import json, sys
from pathlib import Path
from lodestream.config import RuntimeConfig
from lodestream.runtime.jars import ensure
from lodestream.runtime.lock import Jar
from lodestream.runtime.progress import SilentProgress
jars = [Jar(*one) for one in json.loads(sys.argv[1])]
ensure(jars, Path(sys.argv[2]), RuntimeConfig(maven=sys.argv[3]), SilentProgress())
"""


class Counted(Progress, Step):
    def __init__(self) -> None:
        self.steps: list[tuple[str, int | None, str]] = []
        self.moved = 0

    @contextmanager
    def step(self, label: str, total: int | None = None, unit: str = ""):
        self.steps.append((label, total, unit))
        yield self

    def advance(self, amount: int = 1) -> None:
        self.moved += amount


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "Cache für Jars"


def _command(jars: list[Jar], folder: Path, maven: str) -> list[str]:
    listed = json.dumps([(jar.coordinate, jar.sha256, jar.size) for jar in jars])
    return [sys.executable, "-c", ENSURE, listed, str(folder), maven]


def _visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_jars_are_fetched_once_and_then_found_offline(maven, jars, cache):
    progress = Counted()
    files = ensure(jars, cache, RuntimeConfig(maven=maven.url), progress)
    assert progress.steps == [("Fetching 5 jars", sum(jar.size for jar in jars), "bytes")]
    assert progress.moved == sum(jar.size for jar in jars)
    maven.server.shutdown()
    assert ensure(jars, cache, RuntimeConfig(maven="http://127.0.0.1:9/"), SilentProgress()) == files
    assert _visible(cache) == sorted(file.name for file in files)
    assert unverified(jars, cache) == []


def test_a_folder_in_mavens_layout_serves_as_well(maven, jars, cache):
    folder = maven.folder / "maven"
    for address in (str(folder), folder.as_uri()):
        files = ensure(jars, cache / address[:4], RuntimeConfig(maven=address), SilentProgress())
        assert all(file.is_file() for file in files)
    assert maven.asked == []


@pytest.mark.parametrize("damage", ["tampered", "truncated", "longer", "empty", "gone"])
def test_an_altered_jar_is_refused_and_fetched_again(maven, jars, cache, damage):
    runtime = RuntimeConfig(maven=maven.url)
    good = ensure(jars, cache, runtime, SilentProgress())[2]
    content = good.read_bytes()
    maven.asked.clear()
    tampered = content[:100] + bytes([content[100] ^ 1]) + content[101:]
    altered = {"tampered": tampered, "truncated": content[:-1], "longer": content + b"x", "empty": b""}
    if damage == "gone":
        good.unlink()
    else:
        good.write_bytes(altered[damage])
    assert unverified(jars, cache) == [jars[2]]
    ensure(jars, cache, runtime, SilentProgress())
    assert good.read_bytes() == content
    assert maven.asked == [f"/maven/{maven_path(jars[2].coordinate)}"]


@pytest.mark.parametrize("sent", [b"other bytes", b""])
def test_a_repository_that_serves_another_file_is_refused(maven, jars, cache, sent, monkeypatch):
    monkeypatch.setattr("lodestream.runtime.download.time.sleep", lambda _: None)
    (maven.folder / "maven" / maven_path(jars[1].coordinate)).write_bytes(sent)
    with pytest.raises(RuntimeMissing, match=r"jars\.lock") as caught:
        ensure(jars, cache, RuntimeConfig(maven=maven.url), SilentProgress())
    assert jars[1].coordinate in caught.value.what
    assert jars[1].file_name not in _visible(cache)
    assert not [name for name in _visible(cache) if name.startswith(".")]


def test_a_server_that_stumbles_is_asked_again(maven, jars, cache, monkeypatch):
    monkeypatch.setattr("lodestream.runtime.download.time.sleep", lambda _: None)
    maven.fail_first[f"/maven/{maven_path(jars[0].coordinate)}"] = 2
    progress = Counted()
    ensure(jars, cache, RuntimeConfig(maven=maven.url), progress)
    assert progress.moved == sum(jar.size for jar in jars)


def test_a_jar_the_repository_lacks_is_named(maven, jars, cache):
    absent = replace(jars[0], coordinate="org.example:absent:1")
    for address in (maven.url, str(maven.folder / "maven")):
        with pytest.raises(RuntimeMissing, match=r"does not have org/example/absent/1/absent-1\.jar"):
            ensure([absent], cache, RuntimeConfig(maven=address), SilentProgress())


def test_no_network_says_what_to_do(jars, cache, monkeypatch):
    monkeypatch.setattr("lodestream.runtime.download.time.sleep", lambda _: None)
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        address = f"http://user:geheim@127.0.0.1:{reserved.getsockname()[1]}/maven"
        with pytest.raises(RuntimeMissing) as caught:
            ensure(jars, cache, RuntimeConfig(maven=address), SilentProgress())
    said = str(caught.value)
    assert "cannot be reached: [Errno 111] Connection refused" in said
    assert "LODE_RUNTIME_MAVEN" in said
    assert "geheim" not in said


def test_processes_that_start_together_fetch_each_jar_once(maven, jars, cache):
    processes = [subprocess.Popen(_command(jars, cache, maven.url)) for _ in range(4)]
    assert [process.wait(30) for process in processes] == [0, 0, 0, 0]
    assert sorted(maven.asked) == sorted(f"/maven/{maven_path(jar.coordinate)}" for jar in jars)
    assert unverified(jars, cache) == []


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_download_leaves_nothing_half_made(jars, cache, ending):
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = _command(jars, cache, f"http://127.0.0.1:{server.getsockname()[1]}")
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        connection, _ = server.accept()
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n" + b"x" * 20_000)
        while not list(cache.glob(".part-*/*.jar")):
            time.sleep(0.01)
        asked_to_end = time.monotonic()
        process.send_signal(ending)
        process.communicate(timeout=10)
        assert time.monotonic() - asked_to_end < 3
        connection.close()
    assert process.returncode != 0
    assert not list(cache.glob("*.jar"))
    if ending == signal.SIGINT:
        assert _visible(cache) == []


def test_what_a_killed_process_left_is_cleared_away(maven, jars, cache):
    (cache / ".part-dead").mkdir(parents=True)
    (cache / ".part-dead" / "half.jar").write_bytes(b"x")
    ensure(jars, cache, RuntimeConfig(maven=maven.url), SilentProgress())
    assert not list(cache.glob(".part-*"))


def test_a_complete_cache_is_never_written_to(maven, jars, cache):
    ensure(jars, cache, RuntimeConfig(maven=maven.url), SilentProgress())
    (cache / ".lock").unlink()
    before = {path: path.stat().st_mtime_ns for path in [cache, *cache.iterdir()]}
    ensure(jars, cache, RuntimeConfig(maven=maven.url), SilentProgress())
    assert {path: path.stat().st_mtime_ns for path in [cache, *cache.iterdir()]} == before


def test_a_cache_below_a_file_is_explained(jars, maven, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RuntimeMissing, match="LODE_RUNTIME_CACHE"):
        ensure(jars, tmp_path / "file" / "jars", RuntimeConfig(maven=maven.url), SilentProgress())


def test_the_cache_is_where_xdg_says(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir(RuntimeConfig(), {}) == tmp_path / ".cache" / "lodestream"
    assert cache_dir(RuntimeConfig(), {"XDG_CACHE_HOME": "/x"}) == Path("/x/lodestream")
    assert cache_dir(RuntimeConfig(), {"XDG_CACHE_HOME": "not/absolute"}) == tmp_path / ".cache" / "lodestream"
    assert cache_dir(RuntimeConfig(cache="~/here"), {"XDG_CACHE_HOME": "/x"}) == tmp_path / "here"


@pytest.mark.parametrize("group", ["spark", "s3", "broker"])
def test_the_lock_pins_every_jar_by_content(group):
    jars = locked_jars(group)
    assert jars
    assert len({jar.file_name for jar in jars}) == len(jars)
    for jar in jars:
        assert len(jar.coordinate.split(":")) == 3
        assert len(jar.sha256) == 64
        assert jar.size > 1000


def test_the_lock_holds_what_was_asked_for():
    import tomllib

    asked = tomllib.loads((Path(__file__).parents[3] / "requirements" / "jars.toml").read_text())
    for group, spec in asked.items():
        locked = {jar.coordinate for jar in locked_jars(group)}
        assert set(spec.get("exact", [])) | set(spec.get("closure", [])) <= locked
        assert spec.get("closure") or set(spec["exact"]) == locked
