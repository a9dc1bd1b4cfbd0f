"""Tiers by folder, and the one Spark session that every tier above `unit` shares."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from lodestream.config import Config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lodestream.runtime.broker import BrokerInfo

HERE = Path(__file__).parent
TIERS = ("unit", "spark", "stack", "chaos")

# `HYPOTHESIS_PROFILE=long` for a search that takes its time.
settings.register_profile("short", max_examples=40, deadline=None)
settings.register_profile("long", max_examples=2_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


def pytest_collection_finish() -> None:
    """What was imported stays: the collector need not walk through it again with every thousand new objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


def pytest_configure() -> None:
    # A shell starts background jobs with Ctrl-C ignored, and every process that a test starts would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        tier = item.path.relative_to(HERE).parts[0] if item.path.is_relative_to(HERE) else ""
        if tier in TIERS:
            item.add_marker(tier)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The process's Spark, started once: the start costs seconds."""
    from lodestream.runtime.session import start_session

    session = start_session(Config(root=tmp_path_factory.mktemp("spark")), app_name="tests")
    yield session
    session.stop()


@dataclass(frozen=True)
class Lake:
    """A project of one test: its own folder, an empty catalog named `lode`, and a session on it."""

    config: Config
    spark: SparkSession


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    from lodestream.runtime.session import start_session

    config = Config(root=tmp_path)
    return Lake(config, start_session(config, app_name="tests"))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerInfo]:
    """A real Kafka, started once. Tests that stop or break one start their own."""
    from lodestream.runtime.broker import start_broker, stop_broker

    config = Config(root=tmp_path_factory.mktemp("broker"))
    yield start_broker(config)
    stop_broker(config)
