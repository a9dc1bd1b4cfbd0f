"""The demo's working folder: a project like any other, which stays when the demo ends."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from lodestream.config import Config, load_config
from lodestream.errors import AnotherWriter, ConfigError, RuntimeMissing
from lodestream.runtime.broker import stop_broker

# Less than a run's own default: the generator and a live screen have to fit beside it.
_HEAP = "512m"
_NOT_COPIED = ("generator", "__pycache__", ".lode")


@dataclass(frozen=True)
class DemoFolder:
    """`fresh` folders start empty each time; others go on from what they hold."""

    path: Path
    fresh: bool

    @classmethod
    def of(cls, keep: Path | None) -> DemoFolder:
        if keep is None:
            return cls(Path.cwd() / ".lode" / "demo", fresh=True)
        return cls(keep.absolute(), fresh=False)

    @property
    def config(self) -> Config:
        config = load_config(self.path)
        if config.spark.driver_memory is not None:
            return config
        return replace(config, spark=replace(config.spark, driver_memory=_HEAP))

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Make the folder ready and keep other demos out of it; the claim goes with the process."""
        self._refuse_foreign()
        try:
            self._lock_file.parent.mkdir(parents=True, exist_ok=True)
            with self._lock_file.open("a+") as lock:
                self._claim(lock.fileno())
                if self.fresh:
                    self._clear()
                self._fill()
                yield
        except OSError as error:
            raise RuntimeMissing(
                f"cannot use the demo's folder {self.path}",
                why=f"{error.strerror or error} ({error.filename})",
                fix="free some space, or name another folder with --keep DIR",
            ) from error

    @property
    def _lock_file(self) -> Path:
        return self.path / ".lode" / "demo.lock"

    def _refuse_foreign(self) -> None:
        if self.path.is_dir() and any(self.path.iterdir()) and not self._lock_file.is_file():
            raise ConfigError(
                f"{self.path} holds something else",
                why="a demo only goes into a new or empty folder, or on in one of its own",
                fix="name another folder with --keep DIR",
            )

    def _claim(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = self._lock_file.read_text().strip() or "unknown"
            raise AnotherWriter(
                f"another demo runs in {self.path}",
                why=f"process {holder} holds it",
                fix="stop that one, or give this one a folder of its own: --keep DIR",
            ) from None
        os.truncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())

    def _clear(self) -> None:
        if (self.path / "lode.toml").is_file():
            stop_broker(self.config)  # of a demo that was killed a moment ago
        for one in [*self.path.iterdir(), *self._lock_file.parent.iterdir()]:
            if one in (self._lock_file, self._lock_file.parent):
                continue
            shutil.rmtree(one) if one.is_dir() else one.unlink()

    def _fill(self) -> None:
        if (self.path / "lode.toml").is_file():
            return
        ignore = shutil.ignore_patterns(*_NOT_COPIED)
        shutil.copytree(example_folder(), self.path, ignore=ignore, dirs_exist_ok=True)


def example_folder() -> Path:
    """The taxi example: inside the package when installed, in the repository when not."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_examples" / "nyc_taxi", package.parents[1] / "examples" / "nyc_taxi"):
        if (folder / "pipeline.py").is_file():
            return folder
    raise RuntimeMissing(
        "the taxi example is not here",
        why=f"neither inside {package} nor beside the repository's src",
        fix="install Lodestream again",
    )
