"""A real PostgreSQL on a free port, and the few words of its protocol that the tests speak."""

from __future__ import annotations

import io
import os
import pwd
import shutil
import socket
import struct
import subprocess
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from lodestream.config import RuntimeConfig
from lodestream.runtime.jars import ensure_jars
from lodestream.runtime.progress import SilentProgress

USER = "postgres"
_SETTINGS = (
    "wal_level=logical", "fsync=off", "max_wal_senders=4", "max_replication_slots=4", "shared_buffers=16MB",
    "listen_addresses=127.0.0.1", "unix_socket_directories=", "wal_sender_timeout=10s",
)  # fmt: skip


class Postgres:
    """It refuses to run as root, so its folder belongs to a user who may do nothing else."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="lode-postgres-"))
        self.port = free_port()
        self._owner = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        _unpack(self.home / "program")
        self._give_away()
        self._run("initdb", "-D", str(self.data), "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        self.start()

    @property
    def data(self) -> Path:
        return self.home / "data"

    def start(self) -> None:
        options = " ".join(f"-c {one}" for one in (*_SETTINGS, f"port={self.port}"))
        log = str(self.home / "data" / "server.log")
        self._run("pg_ctl", "start", "-w", "-D", str(self.data), "-l", log, "-o", options)

    def stop(self, mode: str = "immediate") -> None:
        """`immediate` is a crash: the server recovers from its log when it starts again."""
        self._run("pg_ctl", "stop", "-w", "-D", str(self.data), "-m", mode)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    def execute(self, *statements: str) -> list[tuple[str | None, ...]]:
        """Each statement in a transaction of its own; the rows of the last one, as text."""
        with Session(self.port) as session:
            rows: list[tuple[str | None, ...]] = []
            for statement in statements:
                rows = session.query(statement)
            return rows

    def _give_away(self) -> None:
        if self._owner is not None:
            for path in (self.home, *self.home.rglob("*")):
                os.chown(path, self._owner.pw_uid, self._owner.pw_gid, follow_symlinks=False)

    def _run(self, program: str, *arguments: str) -> None:
        identity: dict[str, Any] = {}
        if self._owner is not None:
            identity = {"user": self._owner.pw_uid, "group": self._owner.pw_gid, "extra_groups": []}
        # pg_ctl leaves a server behind that would keep a pipe open, so what it says goes to a file.
        with tempfile.TemporaryFile() as said:
            command = [str(self.home / "program" / "bin" / program), *arguments]
            code = subprocess.run(
                command, cwd=self.home, stdin=subprocess.DEVNULL, stdout=said, stderr=said, check=False, **identity
            ).returncode
            said.seek(0)
            assert code == 0, said.read().decode(errors="replace")[-2000:]


class Session:
    """Simple queries over one connection."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._stream = self._socket.makefile("rb")
        body = struct.pack("!i", 196608) + f"user\0{USER}\0database\0postgres\0\0".encode()
        self._socket.sendall(struct.pack("!i", len(body) + 4) + body)
        self._until_ready()

    def query(self, text: str) -> list[tuple[str | None, ...]]:
        body = text.encode() + b"\0"
        self._socket.sendall(b"Q" + struct.pack("!i", len(body) + 4) + body)
        return self._until_ready()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._socket.close()

    def _until_ready(self) -> list[tuple[str | None, ...]]:
        rows, problem = [], None
        while True:
            kind, body = self._message()
            if kind == b"D":
                rows.append(_row(body))
            elif kind == b"E":
                problem = body.replace(b"\0", b" ").decode()
            elif kind == b"Z":
                assert problem is None, problem
                return rows

    def _message(self) -> tuple[bytes, bytes]:
        kind = self._stream.read(1)
        if not kind:
            raise ConnectionError("PostgreSQL closed the connection")
        (length,) = struct.unpack("!i", self._stream.read(4))
        return kind, self._stream.read(length - 4)


def _row(body: bytes) -> tuple[str | None, ...]:
    stream = io.BytesIO(body)
    (count,) = struct.unpack("!h", stream.read(2))
    values: list[str | None] = []
    for _ in range(count):
        (length,) = struct.unpack("!i", stream.read(4))
        values.append(None if length < 0 else stream.read(length).decode())
    return tuple(values)


def _unpack(folder: Path) -> None:
    """The programs are a tar file inside a jar."""
    (jar,) = ensure_jars("postgres", RuntimeConfig(), SilentProgress())
    with zipfile.ZipFile(jar) as packed:
        (name,) = [one for one in packed.namelist() if one.endswith(".txz")]
        with tarfile.open(fileobj=io.BytesIO(packed.read(name)), mode="r:xz") as programs:
            programs.extractall(folder, filter="data")
    folder.parent.chmod(0o755)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(what: str, holds: Any, *, timeout: float = 60.0, otherwise: Any = lambda: "") -> None:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if holds():
            return
        time.sleep(0.2)
    raise AssertionError(f"not within {timeout:.0f} s: {what}\n{otherwise()}")
