"""The doctor sees what is wrong and says the fix."""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from pathlib import Path

import pytest

from lodestream.config import CatalogConfig, Config, KafkaConfig, RuntimeConfig, SparkConfig
from lodestream.doctor import Check, examine, machine, services, supplies
from lodestream.runtime.progress import SilentProgress


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(services, "_SECONDS", 0.3)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(root=tmp_path, runtime=RuntimeConfig(cache=str(tmp_path / "cache")))


def test_everything_is_looked_at(config):
    names = [check.name for check in examine(config, SilentProgress())]
    assert names == ["python", "java", "jars", "memory", "disk", "folders", "clock", "ports", "broker", "catalog"]


def test_nothing_is_left_behind(config, tmp_path):
    list(examine(config, SilentProgress()))
    assert list(tmp_path.iterdir()) == []


def test_what_is_broken_has_a_fix(config, tmp_path):
    bad = Config(
        root=tmp_path,
        runtime=RuntimeConfig(java_home="/nowhere", cache=str(tmp_path)),
        spark=SparkConfig(driver_memory="9000g"),
        kafka=KafkaConfig(bootstrap="127.0.0.1:1"),
        catalog=CatalogConfig(type="rest", uri="http://127.0.0.1:1/catalog"),
    )
    found = {check.name: check for check in examine(bad, SilentProgress())}
    broken = {name for name, check in found.items() if check.state == "broken"}
    assert {"memory", "broker", "catalog"} <= broken
    assert all(found[name].fix for name in broken)


def test_missing_jars_are_a_warning_with_the_command_that_fetches_them(config):
    check = supplies.jars(config)
    assert check.state == "warning"
    assert "lode doctor --fetch" in (check.fix or "")


def test_fetching_from_a_repository_that_does_not_answer_is_broken(tmp_path):
    config = Config(root=tmp_path, runtime=RuntimeConfig(cache=str(tmp_path / "c"), maven=str(tmp_path / "empty")))
    jars = next(check for check in examine(config, SilentProgress(), fetch=True) if check.name == "jars")
    assert jars.state == "broken"
    assert "LODE_RUNTIME_MAVEN" in (jars.fix or "")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to(config, tmp_path):
    tmp_path.chmod(0o555)
    assert machine.folders(config).state == "broken"


def test_a_folder_that_refuses_a_probe(config, monkeypatch):
    def refuse(dir):
        raise OSError(30, "Read-only file system", str(dir))

    monkeypatch.setattr(machine.tempfile, "TemporaryFile", refuse)
    check = machine.folders(config)
    assert check.state == "broken"
    assert "Read-only file system" in check.found


@pytest.mark.parametrize(("free", "state"), [(10_000_000_000, "ok"), (1_000_000_000, "warning"), (1_000_000, "broken")])
def test_disk_space(config, monkeypatch, free, state):
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda _: type("U", (), {"free": free})())
    check = machine.disk(config)
    assert check.state == state
    assert (check.fix is None) == (state == "ok")


def test_a_clock_that_jumps_is_noticed(config, monkeypatch):
    jumps = iter([1_800_000_000.0, 1_800_000_600.0])
    monkeypatch.setattr(machine.time, "time", lambda: next(jumps))
    check = machine.clock(config)
    assert check.state == "warning"
    assert "jumped by +599" in check.found


def test_a_clock_without_a_battery_is_noticed(config, monkeypatch):
    monkeypatch.setattr(machine.time, "time", lambda: 60.0)
    assert machine.clock(config).state == "broken"


def test_a_file_system_with_another_clock_is_noticed(config, monkeypatch):
    monkeypatch.setattr(machine, "_file_system_time", lambda _: time.time() + 600)
    check = machine.clock(config)
    assert check.state == "warning"
    assert "+600" in check.found


def test_a_port_that_does_not_answer(config, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    check = services.broker(Config(root=tmp_path, kafka=KafkaConfig(bootstrap=f"127.0.0.1:{port}")))
    assert check.state == "broken"
    assert "kafka.bootstrap" in (check.fix or "")


def test_a_damaged_catalog_is_broken(config):
    config.state_dir.mkdir()
    (config.state_dir / "catalog.db").write_bytes(b"this is not a database" * 100)
    check = services.catalog(config)
    assert check.state == "broken"
    assert "backup" in (check.fix or "")


def test_a_good_catalog_says_how_many_tables_it_holds(config):
    config.state_dir.mkdir()
    with sqlite3.connect(config.state_dir / "catalog.db") as connection:
        connection.execute("create table iceberg_tables (catalog_name, table_namespace, table_name)")
        connection.execute("insert into iceberg_tables values ('lode', 'gold', 'a')")
    assert services.catalog(config) == Check("catalog", "ok", f"{config.state_dir / 'catalog.db'}, 1 tables")


def test_the_command_exits_1_when_something_is_broken(tmp_path, monkeypatch, capfd):
    import json

    from lodestream.cli.main import run_command

    monkeypatch.setenv("LODE_KAFKA_BOOTSTRAP", "127.0.0.1:1")
    monkeypatch.setenv("LODE_RUNTIME_CACHE", str(tmp_path / "cache"))
    assert run_command(["doctor", "--json", "--project", str(tmp_path)]) == 1
    shown = json.loads(capfd.readouterr().out)
    assert shown["healthy"] is False
    assert run_command(["doctor", "--project", str(tmp_path)]) == 1
    assert "fix: see that the broker runs" in capfd.readouterr().out
