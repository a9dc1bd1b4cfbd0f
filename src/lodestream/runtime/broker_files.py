"""What the embedded broker keeps under `.lode/broker/`: its state, its settings, its data."""

from __future__ import annotations

import base64
import fcntl
import json
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from lodestream.config import Config
from lodestream.errors import RuntimeMissing
from lodestream.runtime.cache import write_atomically
from lodestream.runtime.progress import Progress

NODE_ID = "1"
_LARGEST_MESSAGE = 16 * 1024 * 1024
_LEAST_FREE = 128 * 1024 * 1024
_MOST_LOG_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class BrokerState:
    """The last broker of this folder. `pid` alone could be another program by now, so its birth is kept too."""

    cluster: str
    port: int
    controller_port: int
    pid: int
    born: float
    detached: bool

    def alive(self) -> bool:
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.born) < 1
            return same and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False


@dataclass(frozen=True, slots=True)
class BrokerFolder:
    """The places in `.lode/broker/`."""

    path: Path

    @classmethod
    def of(cls, config: Config) -> BrokerFolder:
        return cls(config.state_dir.absolute() / "broker")

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def log(self) -> Path:
        return self.path / "broker.log"

    @property
    def settings(self) -> Path:
        return self.path / "server.properties"

    @property
    def holders(self) -> Path:
        """A named pipe that every process using an attached broker holds open."""
        return self.path / "holders"

    def state(self) -> BrokerState | None:
        try:
            return BrokerState(**json.loads((self.path / "state.json").read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise RuntimeMissing(
                f"the broker's state file {self.path / 'state.json'} is not readable",
                why=str(error),
                fix="delete that file; the broker's data is not in it",
            ) from error

    def save(self, state: BrokerState) -> None:
        write_atomically(self.path / "state.json", json.dumps(asdict(state), indent=2) + "\n")

    def prepare(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            overgrown = self.log.exists() and self.log.stat().st_size > _MOST_LOG_BYTES
            self.log.open("wb" if overgrown else "ab").close()
        except OSError as error:
            raise RuntimeMissing(
                f"cannot write to the broker's folder {self.path}",
                why=f"{error.strerror} ({error.filename})",
                fix="run in a folder that can be written to, with space on its disk",
            ) from error
        free = shutil.disk_usage(self.path).free
        if free < _LEAST_FREE:
            raise RuntimeMissing(
                f"not enough disk space for the broker in {self.path}",
                why=f"{free // 1_000_000} MB free, it needs {_LEAST_FREE // 1_000_000} MB to start",
                fix="free some space, or work in a folder on another disk",
            )

    @contextmanager
    def alone(self, progress: Progress) -> Iterator[None]:
        """Two starts, or a start and a stop, take turns. The lock goes with the process."""
        with (self.path / ".lock").open("a") as lock:
            if not _try_lock(lock.fileno()):
                with progress.step("Waiting for another process that starts or stops the broker"):
                    while not _try_lock(lock.fileno()):
                        time.sleep(0.05)
            yield

    def cluster(self) -> str | None:
        """The cluster that the data belongs to; None when there is none yet. Refuses data that is not ours."""
        meta = self.data / "meta.properties"
        if not meta.exists():
            return None
        lines = meta.read_text(encoding="utf-8").splitlines()
        found = dict(line.split("=", 1) for line in lines if "=" in line)
        state, cluster = self.state(), found.get("cluster.id", "")
        ours = found.get("node.id") == NODE_ID and (state is None or state.cluster == cluster)
        if not ours:
            expected = f"cluster {state.cluster}" if state else "this project"
            raise RuntimeMissing(
                f"the data in {self.data} is of another broker",
                why=f"it says cluster {cluster}, node {found.get('node.id')}; expected {expected}, node {NODE_ID}",
                fix=f"move {self.data} away to start with an empty broker, or put the right data back",
            )
        return cluster

    def write_settings(self, port: int, controller_port: int, partitions: int) -> None:
        lines = _server_settings(port, controller_port, partitions).items()
        write_atomically(self.settings, "".join(f"{key}={value}\n" for key, value in lines))


def new_cluster_id() -> str:
    """Kafka's form of a UUID."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):  # the format tool would take it for an option
            return text


def _server_settings(port: int, controller_port: int, partitions: int) -> dict[str, object]:
    one_copy = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    return {
        "process.roles": "broker,controller",
        "node.id": NODE_ID,
        "controller.quorum.voters": f"{NODE_ID}@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        # Relative: the broker runs in its folder, so no letter of the path needs escaping here.
        "log.dirs": "data",
        "num.partitions": partitions,
        "auto.create.topics.enable": "true",
        "delete.topic.enable": "true",
        "message.max.bytes": _LARGEST_MESSAGE,
        "replica.fetch.max.bytes": _LARGEST_MESSAGE,
        **{f"{topic}.replication.factor": 1 for topic in one_copy},
        **{f"{topic}.num.partitions": 1 for topic in one_copy},
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        # Small: one user on one machine.
        "num.network.threads": 1,
        "num.io.threads": 2,
        "background.threads": 2,
        "log.cleaner.dedupe.buffer.size": 2 * 1024 * 1024,
        "log.index.size.max.bytes": 1024 * 1024,
    }


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
