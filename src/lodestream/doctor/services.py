"""What the project talks to: ports, the broker, the catalog."""

from __future__ import annotations

import socket
import sqlite3
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from lodestream.config import Config, reveal
from lodestream.doctor.check import Check
from lodestream.runtime.broker import broker_status
from lodestream.runtime.catalogs import catalog_file, python_settings

_SECONDS = 5


def ports(_config: Config) -> Check:
    """The embedded parts listen on loopback, on ports that the system hands out."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), _SECONDS):
            pass
    except OSError as error:
        fix = "see that the loopback interface is up and no firewall closes it"
        return Check("ports", "broken", f"loopback cannot be used: {error.strerror}", fix)
    return Check("ports", "ok", "loopback works, free ports are handed out")


def broker(config: Config) -> Check:
    if config.kafka.bootstrap == "embedded":
        found = broker_status(config)
        if found is None:
            return Check("broker", "ok", "embedded, not running; it starts with the first run that needs it")
        return _answers(
            found.bootstrap, {}, f"embedded at {found.bootstrap}", "lode broker stop, then lode broker start"
        )
    options = {key: reveal(value) for key, value in config.kafka.options.items()}
    fix = "see that the broker runs, and kafka.bootstrap and kafka.options in lode.toml"
    return _answers(config.kafka.bootstrap, options, config.kafka.bootstrap, fix)


def _answers(bootstrap: str, options: dict[str, str], label: str, fix: str) -> Check:
    try:
        client = AdminClient({**options, "bootstrap.servers": bootstrap, "log_level": 0})
        topics = client.list_topics(timeout=_SECONDS).topics
    except KafkaException as error:
        return Check("broker", "broken", f"{label} does not answer: {error.args[0].str()}", fix)
    return Check("broker", "ok", f"{label} answers, {len(topics)} topics")


def catalog(config: Config) -> Check:
    file = catalog_file(config)
    return _sqlite(file) if file else _remote(config)


def _sqlite(file: Path) -> Check:
    if not file.exists():
        return Check("catalog", "ok", f"{file} is made by the first run")
    fix = "stop every run, then restore the file from a backup; the tables themselves are in the warehouse"
    try:
        with sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=_SECONDS) as connection:
            verdict = connection.execute("pragma quick_check").fetchone()[0]
            tables = connection.execute("select count(*) from iceberg_tables").fetchone()[0]
    except sqlite3.Error as error:
        return Check("catalog", "broken", f"{file}: {error}", fix)
    if verdict != "ok":
        return Check("catalog", "broken", f"{file}: {verdict}", fix)
    return Check("catalog", "ok", f"{file}, {tables} tables")


def _remote(config: Config) -> Check:
    from pyiceberg.catalog import load_catalog

    try:
        namespaces = load_catalog(config.catalog.name, **python_settings(config)).list_namespaces()
    except Exception as error:  # each kind of catalog has its own errors, of several libraries
        why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return Check("catalog", "broken", f"{config.catalog.type} catalog does not answer: {why}", _REMOTE_FIX)
    return Check("catalog", "ok", f"{config.catalog.type} catalog answers, {len(namespaces)} namespaces")


_REMOTE_FIX = "see that it runs, and catalog.uri, catalog.warehouse and catalog.properties in lode.toml"
