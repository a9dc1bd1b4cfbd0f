from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from lodestream.runtime.lock import Jar, maven_path


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder, counts requests, and misbehaves on demand."""

    asked: list[str]
    fail_first: dict[str, int]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.fail_first.get(self.path, 0) > 0:
            self.fail_first[self.path] -= 1
            self.send_error(503)
            return
        super().do_GET()

    def log_message(self, *arguments: object) -> None:
        pass


class MavenServer:
    """A Maven repository on loopback with small real files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        self.fail_first: dict[str, int] = {}
        seen = {"asked": self.asked, "fail_first": self.fail_first}
        handler = type("Counting", (Handler,), seen)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
        self.url = f"http://127.0.0.1:{self.server.server_port}/maven"
        Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def add(self, coordinate: str, content: bytes) -> Jar:
        file = self.folder / "maven" / maven_path(coordinate)
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
        return Jar(coordinate, hashlib.sha256(content).hexdigest(), len(content))


@pytest.fixture
def maven(tmp_path: Path) -> Iterator[MavenServer]:
    server = MavenServer(tmp_path / "repository")
    yield server
    server.server.shutdown()
    server.server.server_close()


@pytest.fixture
def jars(maven: MavenServer) -> list[Jar]:
    return [maven.add(f"org.example.deep:part-{n}_2.13:1.{n}", os.urandom(40_000 + n)) for n in range(5)]
