"""A real S3 server for the tests of this folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.fs as arrow_fs
import pytest


@dataclass(frozen=True)
class Bucket:
    """An empty bucket, and the options with which `Files` reads it."""

    name: str
    options: dict[str, str]
    files: Any

    def put(self, key: str, content: bytes) -> None:
        with self.files.open_output_stream(f"{self.name}/{key}", compression=None) as stream:
            stream.write(content)

    def delete(self, key: str) -> None:
        self.files.delete_file(f"{self.name}/{key}")


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """SeaweedFS on loopback, with one key pair."""
    weed = Path(sys.executable).with_name("weed")
    program = str(weed) if weed.exists() else shutil.which("weed")
    assert program, "the dev dependencies bring SeaweedFS as `weed`"
    folder = tmp_path_factory.mktemp("s3")
    ports = {name: _free_port() for name in ("master", "volume", "filer", "s3", "webdav", "admin")}
    arguments = [f"-{name}.port={port}" for name, port in ports.items()]
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, "mini", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", *arguments],
            stdout=log,
            stderr=log,
            env=environment,
        )
    try:
        options = {"endpoint": f"http://127.0.0.1:{ports['s3']}", "access_key": "key", "secret_key": "secret"}
        _await(options, process, folder / "log")
        yield options
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture
def bucket(s3: dict[str, str], request: pytest.FixtureRequest) -> Bucket:
    name = "b" + str(abs(hash(request.node.name)))
    files = _filesystem(s3)
    files.create_dir(name)
    return Bucket(name, s3, files)


def _filesystem(options: dict[str, str]) -> Any:
    return arrow_fs.S3FileSystem(
        access_key=options["access_key"],
        secret_key=options["secret_key"],
        endpoint_override=options["endpoint"].removeprefix("http://"),
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
    )


def _await(options: dict[str, str], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            _filesystem(options).create_dir("ready")
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(log.read_text()[-2000:]) from None
            time.sleep(0.2)


def _free_port() -> int:
    """One whose number plus 10,000 is free too: each service has a second port there."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 10_000))
            except (OSError, OverflowError):
                continue
            return port
