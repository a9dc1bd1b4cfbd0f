from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from lodestream.config import Config, KafkaConfig
from lodestream.errors import RuntimeMissing
from lodestream.runtime.broker import BrokerInfo, broker_status, log_path, start_broker, stop_broker
from lodestream.runtime.progress import SilentProgress

USER = """
import sys, time
from pathlib import Path
from lodestream.config import Config
from lodestream.runtime.broker import start_broker
info = start_broker(Config(root=Path(sys.argv[1])), detached=len(sys.argv) > 2)
print(info.pid, info.started, flush=True)
time.sleep(float(sys.argv[2]) if len(sys.argv) > 2 else 600)
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Config]:
    config = Config(root=tmp_path / "Zug nach Köln")
    yield config
    stop_broker(config)


def _user_process(config: Config, *arguments: str) -> tuple[subprocess.Popen[str], int, bool]:
    """Another process that uses the broker, and the broker's pid and whether that process started it."""
    command = [sys.executable, "-c", USER, str(config.root), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout as said:
        pid, started = said.readline().split()
    return process, int(pid), started == "True"


def _kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def _soon(condition: Callable[[], bool], seconds: float = 15) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def _gone(pid: int) -> bool:
    # An ended process that init has not collected yet is gone for us.
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def _produce(bootstrap: str, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 16_000_000})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(20) == 0


def _consume(bootstrap: str, topic: str, count: int) -> list[bytes]:
    settings = {"group.id": "test", "auto.offset.reset": "earliest", "fetch.message.max.bytes": 16_000_000}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.subscribe([topic])
    found: list[bytes] = []
    deadline = time.monotonic() + 20
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            found.append(message.value())
    consumer.close()
    return found


def test_a_restart_keeps_the_data_and_the_port(project: Config):
    first = start_broker(project, SilentProgress())
    _produce(first.bootstrap, "trips", b"one", b"two")
    assert stop_broker(project)
    assert broker_status(project) is None
    second = start_broker(project)
    assert (second.port, second.started) == (first.port, True)
    assert second.pid != first.pid
    assert _consume(second.bootstrap, "trips", 2) == [b"one", b"two"]


def test_a_second_start_finds_the_first(project: Config):
    first = start_broker(project)
    second = start_broker(project)
    assert first.started
    assert not second.started
    assert (second.pid, second.bootstrap) == (first.pid, first.bootstrap)
    assert broker_status(project) == second


def test_ten_megabyte_messages_pass(broker: BrokerInfo):
    large = os.urandom(10_000_000)
    _produce(broker.bootstrap, "large", large, large)
    assert _consume(broker.bootstrap, "large", 2) == [large, large]


def test_new_topics_get_the_configured_partitions_and_topics_can_be_deleted(project: Config):
    info = start_broker(replace(project, kafka=KafkaConfig(partitions=3)))
    _produce(info.bootstrap, "wide", b"x")
    client = AdminClient({"bootstrap.servers": info.bootstrap})
    assert len(client.list_topics("wide", timeout=10).topics["wide"].partitions) == 3
    client.delete_topics(["wide"])["wide"].result(10)
    assert _soon(lambda: "wide" not in client.list_topics(timeout=10).topics)


def test_a_thousand_partitions_fit_in_the_small_heap(broker: BrokerInfo):
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    client.create_topics([NewTopic("many", num_partitions=1000)])["many"].result(60)
    assert _soon(lambda: len(client.list_topics("many", timeout=20).topics["many"].partitions) == 1000, 60)
    _produce(broker.bootstrap, "many", *(b"%d" % number for number in range(3000)))
    assert psutil.Process(broker.pid).memory_info().rss < 450 * 1024 * 1024


def test_the_broker_listens_on_loopback_only(broker: BrokerInfo):
    connections = psutil.Process(broker.pid).net_connections(kind="inet")
    addresses = {c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN}
    assert addresses
    assert addresses <= {"127.0.0.1", "::ffff:127.0.0.1"}


def test_a_killed_parent_leaves_no_broker(project: Config):
    parent, pid, started = _user_process(project)
    assert started
    assert not _gone(pid)
    _kill(parent)
    assert _soon(lambda: _gone(pid))
    assert start_broker(project).started


def test_the_broker_lives_as_long_as_any_of_its_users(project: Config):
    first, pid, _ = _user_process(project)
    second, same, started = _user_process(project)
    assert (same, started) == (pid, False)
    _kill(first)
    time.sleep(1)
    assert not _gone(pid)
    _kill(second)
    assert _soon(lambda: _gone(pid))


def test_a_detached_broker_outlives_its_parent_until_it_is_stopped(project: Config):
    parent, pid, _ = _user_process(project, "0")
    parent.wait(20)
    time.sleep(0.5)
    info = broker_status(project)
    assert info is not None
    assert (info.pid, info.detached) == (pid, True)
    assert stop_broker(project)
    assert _gone(pid)
    assert not stop_broker(project)


def test_two_processes_that_start_at_once_share_one_broker(project: Config):
    command = [sys.executable, "-c", USER, str(project.root)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    lines = [process.stdout.readline().split() for process in both if process.stdout]
    for process in both:
        _kill(process)
        assert process.stdout is not None
        process.stdout.close()
    assert lines[0][0] == lines[1][0]
    assert sorted(started for _, started in lines) == ["False", "True"]


def test_a_taken_port_is_left_alone_and_the_data_moves_to_another(project: Config):
    first = start_broker(project)
    _produce(first.bootstrap, "trips", b"one")
    stop_broker(project)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", first.port))
        other.listen()
        second = start_broker(project)
        assert second.port != first.port
        assert _consume(second.bootstrap, "trips", 1) == [b"one"]


def test_data_of_another_cluster_is_refused(project: Config):
    data = start_broker(project).data
    stop_broker(project)
    meta = data / "meta.properties"
    lines = meta.read_text().splitlines()
    meta.write_text("\n".join("cluster.id=AAAAAAAAQACAAAAAAAAAAQ" if "cluster" in one else one for one in lines))
    with pytest.raises(RuntimeMissing, match="of another broker") as caught:
        start_broker(project)
    assert "AAAAAAAAQACAAAAAAAAAAQ" in str(caught.value)
    assert broker_status(project) is None


def test_a_broker_that_cannot_start_says_why(project: Config):
    data = start_broker(project).data
    stop_broker(project)
    (data / "__cluster_metadata-0" / "partition.metadata").write_text("not a number\n")
    with pytest.raises(RuntimeMissing, match="ended while starting") as caught:
        start_broker(project)
    assert "Exception" in str(caught.value)
    assert str(log_path(project)) in str(caught.value)


def test_a_state_file_that_names_another_program_is_no_broker(project: Config):
    folder = project.state_dir / "broker"
    folder.mkdir(parents=True)
    me = os.getpid()
    (folder / "state.json").write_text(
        f'{{"cluster": "x", "port": 1, "controller_port": 2, "pid": {me}, "born": 1.0, "detached": true}}'
    )
    assert broker_status(project) is None
    assert not stop_broker(project)
