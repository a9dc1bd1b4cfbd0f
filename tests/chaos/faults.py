"""What goes wrong around a driver, and comes right again: the broker, the catalog, the disk."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path

from protocol_oracle import Driver, Project, wait_until

from lodestream.config import Config
from lodestream.runtime.broker import start_broker

# Seconds that broker and catalog stay away; LODE_OUTAGE=60 for the long form.
OUTAGE = float(os.environ.get("LODE_OUTAGE", "3"))


class Fault(ABC):
    """`strike`, and after a while `heal`. `seen` is the error that the driver must name while it lasts."""

    seen: str

    @abstractmethod
    def strike(self) -> None: ...

    @abstractmethod
    def heal(self) -> None: ...


class BrokerKilled(Fault):
    """SIGKILL, no clean stop; later it starts again on the same port and recovers its log."""

    seen = "BrokerUnavailable"

    def __init__(self, config: Config) -> None:
        self._config = config
        self._port = 0

    def strike(self) -> None:
        broker = start_broker(self._config)
        self._port = broker.port
        os.kill(broker.pid, signal.SIGKILL)

    def heal(self) -> None:
        assert start_broker(self._config).port == self._port


class CatalogLocked(Fault):
    """Another process holds the SQLite file: nobody can read or write it."""

    seen = "CatalogUnavailable"

    def __init__(self, project: Project) -> None:
        self._file = project.config.state_dir / "catalog.db"
        self._held: sqlite3.Connection | None = None

    def strike(self) -> None:
        self._held = sqlite3.connect(self._file, isolation_level=None, timeout=30)
        self._held.execute("BEGIN EXCLUSIVE")

    def heal(self) -> None:
        assert self._held is not None
        self._held.execute("ROLLBACK")
        self._held.close()


class DiskFull(Fault):
    """The project's state folder on a file system of its own, made as small as what it holds."""

    seen = "DiskFull"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g", "lode-chaos", str(folder)], check=True)

    @staticmethod
    def can_mount() -> bool:
        return os.geteuid() == 0 and shutil.which("mount") is not None

    def strike(self) -> None:
        # The driver writes meanwhile, and a size below what is used is refused.
        wait_until("a full disk", self._shrink, timeout=20)

    def heal(self) -> None:
        self._resize("1g")

    def unmount(self) -> None:
        subprocess.run(["umount", "-l", str(self.folder)], check=False)

    def _shrink(self) -> bool:
        used = shutil.disk_usage(self.folder).used
        return self._resize(str(used + 4096))

    def _resize(self, size: str) -> bool:
        command = ["mount", "-o", f"remount,size={size}", str(self.folder)]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0


def endure(driver: Driver, fault: Fault) -> None:
    """Strike, see the driver name it and retry, and let it last."""
    before = driver.retries(fault.seen)
    fault.strike()
    began = time.monotonic()
    wait_until(
        f"a retry that names {fault.seen}",
        lambda: driver.retries(fault.seen) > before,
        timeout=60,
        otherwise=driver.said,
    )
    time.sleep(max(0.0, OUTAGE - (time.monotonic() - began)))
