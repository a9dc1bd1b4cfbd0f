"""Start Kafka's own programs from the jars, and see that an attached broker ends with its users."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from lodestream.errors import RuntimeMissing
from lodestream.runtime.broker_files import BrokerFolder
from lodestream.runtime.class_archive import ClassArchive
from lodestream.runtime.java import Java, java_environment

_START_SECONDS = 60
_LOG_SETTINGS = Path(__file__).with_name("log4j2-broker.properties")
_MEMORY = ("-Xmx192m", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")

# Both scripts print the broker's process id. A detached broker is left to init; an attached one has a guard:
# `cat` ends when no process holds the pipe open any more, however the last one died.
_DETACH = """
"$@" </dev/null >&2 &
echo "$!"
"""
_GUARD = """
"$@" </dev/null >&2 &
echo "$!"
exec >/dev/null
cat "$HOLDERS"
kill "$!" 2>/dev/null
wait "$!"
"""
_guards: list[subprocess.Popen[bytes]] = []  # kept, so that one still at work is not reported as lost


@dataclass(frozen=True, slots=True)
class Kafka:
    """A Java and the broker's jars."""

    java: Java
    jars: list[Path]
    archive: ClassArchive

    def command(self, main: str, *arguments: str, options: Sequence[str] = ()) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
        class_path = ":".join(map(str, self.jars))
        return [str(self.java.executable), *_MEMORY, logging, *options, "-cp", class_path, main, *arguments]

    def server_command(self, folder: BrokerFolder) -> list[str]:
        return self.command("kafka.Kafka", folder.settings.name, options=self.archive.options())

    def environment(self) -> dict[str, str]:
        return {**java_environment(os.environ), "MALLOC_ARENA_MAX": "2"}

    def format(self, folder: BrokerFolder, cluster: str) -> None:
        """Make the data folder of a new cluster."""
        command = self.command("kafka.tools.StorageTool", "format", "-t", cluster, "-c", folder.settings.name)
        done = subprocess.run(
            command, cwd=folder.path, env=self.environment(), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeMissing(
                f"cannot make the broker's data folder {folder.data}",
                why=(done.stderr.strip() or done.stdout.strip()).splitlines()[-1],
                fix="see that the disk has space and the folder can be written to",
            )


def spawn(kafka: Kafka, folder: BrokerFolder, *, detached: bool) -> int:
    """The process id of a new broker. For an attached one the caller holds the pipe already."""
    with folder.log.open("ab") as log:
        shell = subprocess.Popen(
            ["/bin/sh", "-c", _DETACH if detached else _GUARD, "broker", *kafka.server_command(folder)],
            cwd=folder.path,
            env={**kafka.environment(), "HOLDERS": str(folder.holders)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # Ctrl-C in the terminal is for us; we stop the broker in our turn
        )
    assert shell.stdout is not None  # noqa: S101 - narrows the type: it is a pipe
    with shell.stdout as said:
        pid = int(said.readline())
    if detached:
        shell.wait()
    else:
        _guards[:] = [guard for guard in _guards if guard.poll() is None] + [shell]
    return pid


def hold_new(folder: BrokerFolder) -> int:
    """Make the pipe of a new broker and hold it open; it closes with this process."""
    folder.holders.unlink(missing_ok=True)
    os.mkfifo(folder.holders, 0o600)
    # For both directions: the guard is not there yet, and opening for writing alone needs a reader.
    return os.open(folder.holders, os.O_RDWR | os.O_NONBLOCK)


def hold(folder: BrokerFolder) -> int | None:
    """Hold the pipe of a running broker; None when its last user has just left, so that it is ending."""
    try:
        return os.open(folder.holders, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:  # ENXIO: the guard reads no more
        return None


def wait_until_ready(pid: int, port: int, folder: BrokerFolder, log_start: int) -> None:
    """Returns when the broker answers a client; raises when it ended or stays silent."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if not _runs(pid):
            raise BrokerEnded(_last_words(folder.log, log_start))
        if _listens(port) and answers(port, timeout=2):
            return
        time.sleep(0.05)
    raise RuntimeMissing(
        f"the broker did not answer within {_START_SECONDS} s",
        why=_last_words(folder.log, log_start),
        fix=f"see {folder.log}; a machine under heavy load may need another try",
    )


class BrokerEnded(Exception):
    """The broker's process ended while starting; the text is the last it said."""


def answers(port: int, timeout: float) -> bool:
    """Whether a Kafka client gets metadata with a live broker in it."""
    client = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0, "socket.timeout.ms": 2000})
    try:
        return bool(client.list_topics(timeout=timeout).brokers)
    except KafkaException:
        return False


def free_port(preferred: int = 0) -> int:
    """The preferred port when nobody listens on it, else any free one."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
            return found
    raise RuntimeMissing("no free port on 127.0.0.1", fix="close some programs that hold connections open")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _last_words(log: Path, start: int) -> str:
    lines = log.read_bytes()[start:].decode(errors="replace").splitlines()
    telling = [line for line in lines if "Exception" in line or " ERROR " in line or " FATAL " in line]
    return " | ".join((telling or lines)[-2:]) or "it said nothing"
