"""examples/orders: five streams in any order and any spelling give the tables that a batch job would."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from orders_oracle import GOLD, TABLES, expected

from lodestream.config import Config, load_config
from lodestream.engine import run_pipeline
from lodestream.planning.project import open_project
from lodestream.tables.inspect import Inspector

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lodestream.runtime.broker import BrokerInfo

EXAMPLE = Path(__file__).parents[3] / "examples" / "orders"
ORDERS = int(os.environ.get("LODE_ORDERS", "400"))
SEED = int(os.environ.get("LODE_SEED", "11"))


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("shop_generator", EXAMPLE / "generator.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(spark: SparkSession, broker: BrokerInfo, tmp_path: Path, generator: ModuleType) -> Config:
    shutil.copytree(EXAMPLE, tmp_path / "shop", ignore=shutil.ignore_patterns(".lode", "__pycache__"))
    settings = tmp_path / "shop" / "lode.toml"
    settings.write_text(settings.read_text().replace('"embedded"', f'"{broker.bootstrap}"'))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.create_topics([NewTopic(topic, 3, 1) for topic in generator.TOPICS]).values():
        future.result(20)
    return load_config(tmp_path / "shop")


def test_every_table_equals_a_recompute_while_the_streams_arrive(
    project: Config, broker: BrokerInfo, generator: ModuleType
) -> None:
    messages = generator.messages(ORDERS, SEED)
    half, sent = len(messages) // 2, 0
    # After the first half, orders without payments and payments without orders are the rule: Gold corrects itself.
    for upto in (half, len(messages)):
        send(broker.bootstrap, messages[sent:upto])
        end = run_pipeline(open_project(project), once=True)
        assert end.exit_code == 0, end
        compare(project, messages[:upto])
        sent = upto


def send(bootstrap: str, messages: list[Any]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for message in messages:
        producer.produce(message.topic, message.value, key=message.key)
    assert producer.flush(30) == 0


def compare(project: Config, messages: list[Any]) -> None:
    tables, dead = expected(messages)
    for name, wanted in tables.items():
        tier = "gold" if name in GOLD else "silver"
        held = rows(project, f"{tier}.{name}")
        columns = set(wanted[0]) if wanted else set()
        assert as_bag(held, columns) == as_bag(wanted, columns), f"{tier}.{name} of seed {SEED}"
    assert {name: len(rows(project, f"silver.{name}__dead")) for name in TABLES} == dead


def rows(project: Config, table: str) -> list[dict[str, Any]]:
    view = Inspector(project).look(table)
    return [] if view is None else view.table.scan().to_arrow().to_pylist()


def as_bag(found: list[dict[str, Any]], columns: set[str]) -> Counter[Any]:
    return Counter(tuple((name, _plain(row[name])) for name in sorted(columns)) for row in found)


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
