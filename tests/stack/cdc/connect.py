"""A real Kafka Connect with Debezium's PostgreSQL connector, in one process that may be killed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from postgres import Postgres, free_port

from lodestream.config import Config
from lodestream.runtime.jars import ensure_jars
from lodestream.runtime.java import find_java
from lodestream.runtime.progress import SilentProgress

_WORKER = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter.schemas.enable": "false",
    "offset.flush.interval.ms": "500",
    "plugin.discovery": "hybrid_warn",
}
_CONNECTOR = {
    "name": "cdc",
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "tasks.max": "1",
    "plugin.name": "pgoutput",
    "database.hostname": "127.0.0.1",
    "database.user": "postgres",
    "database.password": "",
    "database.dbname": "postgres",
    "topic.prefix": "cdc",
    "publication.autocreate.mode": "filtered",
    "skipped.operations": "none",  # a truncate is told too
    "decimal.handling.mode": "string",
    "poll.interval.ms": "50",
    "retriable.restart.connector.wait.ms": "500",
    "errors.max.retries": "-1",
}


class Connect:
    """Its offsets are in a file: what it has sent and not yet written down is sent again after a kill."""

    def __init__(self, folder: Path, config: Config, bootstrap: str, database: Postgres, tables: str) -> None:
        self._folder = folder
        folder.mkdir()
        java, jars = find_java(config.runtime), ensure_jars("cdc", config.runtime, SilentProgress())
        listener = f"http://127.0.0.1:{free_port()}"
        worker = {"bootstrap.servers": bootstrap, "listeners": listener, "offset.storage.file.filename": "offsets.dat"}
        source = {"database.port": str(database.port), "table.include.list": tables}
        self._settings("worker.properties", {**_WORKER, **worker})
        self._settings("connector.properties", {**_CONNECTOR, **source})
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", ":".join(map(str, jars))]
        main = "org.apache.kafka.connect.cli.ConnectStandalone"
        self._command = [str(java.executable), *options, main, "worker.properties", "connector.properties"]
        self.start()

    def start(self) -> None:
        with (self._folder / "connect.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, stdout=log, stderr=log, env=dict(os.environ)
            )

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def said(self) -> str:
        return (self._folder / "connect.log").read_text(errors="replace")[-4000:]

    def _settings(self, name: str, values: dict[str, str]) -> None:
        (self._folder / name).write_text("".join(f"{key}={value}\n" for key, value in values.items()))
