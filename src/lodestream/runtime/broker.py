"""The project's own Kafka: a real broker (KRaft, one node) on loopback, with its data under `.lode/broker/`."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from lodestream.config import Config
from lodestream.errors import RuntimeMissing
from lodestream.runtime.broker_files import BrokerFolder, BrokerState, new_cluster_id
from lodestream.runtime.broker_process import (
    BrokerEnded,
    Kafka,
    free_port,
    hold,
    hold_new,
    spawn,
    wait_until_ready,
)
from lodestream.runtime.cache import cache_dir
from lodestream.runtime.class_archive import ClassArchive
from lodestream.runtime.jars import ensure_jars
from lodestream.runtime.java import find_java
from lodestream.runtime.progress import Progress, SilentProgress

_log = logging.getLogger(__name__)
_ATTEMPTS = 3
_STOP_SECONDS = 30
_held: dict[Path, int] = {}  # folder of a broker this process uses -> its end of the pipe


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A running broker."""

    bootstrap: str
    pid: int
    port: int
    data: Path
    started: bool  # by this very call
    detached: bool  # lives until it is stopped; otherwise it ends with the last process that uses it


def start_broker(config: Config, progress: Progress | None = None, detached: bool = False) -> BrokerInfo:
    """Start the broker and wait until it answers, or find the one that runs.

    Attached (the default), it ends with the last process that called this, even by SIGKILL.
    """
    progress = progress or SilentProgress()
    folder = BrokerFolder.of(config)
    folder.prepare()
    with folder.alone(progress):
        state = folder.state()
        if state and state.alive() and _join(folder, state):
            return _info(folder, state, started=False)
        kafka = _kafka(config, progress)
        with progress.step("Starting the Kafka broker"):
            state = _start(kafka, folder, config.kafka.partitions, detached)
    return _info(folder, state, started=True)


def stop_broker(config: Config) -> bool:
    """Stop the broker, attached or not; False when none runs."""
    folder = BrokerFolder.of(config)
    if not folder.path.is_dir():
        return False
    with folder.alone(SilentProgress()):
        state = folder.state()
        stopped = state is not None and state.alive() and _end(state)
        _release(folder)
    return stopped


def broker_status(config: Config) -> BrokerInfo | None:
    """The running broker, if any."""
    folder = BrokerFolder.of(config)
    state = folder.state()
    return _info(folder, state, started=False) if state and state.alive() else None


def log_path(config: Config) -> Path:
    """Where the broker writes what it has to say."""
    return BrokerFolder.of(config).log


def _kafka(config: Config, progress: Progress) -> Kafka:
    java, jars = find_java(config.runtime), ensure_jars("broker", config.runtime, progress)
    return Kafka(java, jars, ClassArchive(cache_dir(config.runtime) / "classes", "broker", java, jars))


def _start(kafka: Kafka, folder: BrokerFolder, partitions: int, detached: bool) -> BrokerState:
    last = folder.state()
    cluster = folder.cluster()
    for attempt in range(1, _ATTEMPTS + 1):
        # The port of last time, so that clients that know it find the broker again.
        port = free_port(last.port if last and attempt == 1 else 0)
        controller_port = free_port()
        folder.write_settings(port, controller_port, partitions)
        if cluster is None:
            cluster = new_cluster_id()
            kafka.format(folder, cluster)
        log_start = folder.log.stat().st_size
        state = _launch(kafka, folder, cluster, port, controller_port, detached)
        try:
            wait_until_ready(state.pid, port, folder, log_start)
        except BrokerEnded as error:
            _release(folder)
            # Between our look and the broker's start another program may have taken a port.
            if attempt < _ATTEMPTS and "in use" in str(error):
                continue
            raise RuntimeMissing(
                "the Kafka broker ended while starting",
                why=str(error),
                fix=f"see {folder.log}; `lode doctor` checks ports, disk and memory",
            ) from error
        except BaseException:
            _end(state)
            _release(folder)
            raise
        _log.info("broker.started pid=%d port=%d detached=%s", state.pid, port, detached)
        return state
    raise AssertionError("the last attempt returns or raises")


def _launch(
    kafka: Kafka, folder: BrokerFolder, cluster: str, port: int, controller_port: int, detached: bool
) -> BrokerState:
    if not detached:
        _release(folder)
        _held[folder.path] = hold_new(folder)
    pid = spawn(kafka, folder, detached=detached)
    state = BrokerState(cluster, port, controller_port, pid, _birth(pid), detached)
    folder.save(state)
    return state


def _birth(pid: int) -> float:
    try:
        return float(psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        return 0.0


def _join(folder: BrokerFolder, state: BrokerState) -> bool:
    """Become a user of a running broker; False when it was just ending, and has ended now."""
    if state.detached or folder.path in _held:
        return True
    held = hold(folder)
    if held is None:
        _end(state)
        return False
    _held[folder.path] = held
    return True


def _release(folder: BrokerFolder) -> None:
    descriptor = _held.pop(folder.path, None)
    if descriptor is not None:
        os.close(descriptor)


def _end(state: BrokerState) -> bool:
    """A clean end; by force when that takes too long. Kafka recovers its log either way."""
    try:
        process = psutil.Process(state.pid)
        process.terminate()
        deadline = time.monotonic() + _STOP_SECONDS
        while state.alive() and time.monotonic() < deadline:
            time.sleep(0.05)
        if state.alive():
            process.kill()
    except psutil.NoSuchProcess:
        pass
    return True


def _info(folder: BrokerFolder, state: BrokerState, *, started: bool) -> BrokerInfo:
    return BrokerInfo(
        bootstrap=f"127.0.0.1:{state.port}",
        pid=state.pid,
        port=state.port,
        data=folder.data,
        started=started,
        detached=state.detached,
    )
