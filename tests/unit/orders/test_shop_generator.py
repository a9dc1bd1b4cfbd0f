"""The generator of examples/orders: the same seed tells the same story, and it is as messy as it claims to be."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).parents[3] / "examples" / "orders" / "generator.py"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("shop_generator", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_seed_is_a_story(generator: ModuleType) -> None:
    assert generator.messages(200, 3) == generator.messages(200, 3)
    assert generator.messages(200, 3) != generator.messages(200, 4)


def test_every_kind_of_mess_is_there(generator: ModuleType) -> None:
    messages = generator.messages(2000, 1)
    assert {one.topic for one in messages} == set(generator.TOPICS)
    told = Counter((one.topic, one.value) for one in messages if one.value is not None)
    assert max(told.values()) > 1, "nothing is told twice"
    payments = [one for one in messages if one.topic == generator.PAYMENTS]
    read = [json.loads(one.value) for one in payments if one.value.endswith(b"}")]
    assert {type(one.get("paid_at")) for one in read} >= {str, int}
    assert len({name for one in read for name in one if name in ("order_id", "order", "orderId")}) == 3
    assert len(read) < len(payments), "no message is cut off"
    first = {}
    for place, one in enumerate(messages):
        first.setdefault((one.topic, one.key), place)
    early = [key for (topic, key), place in first.items() if topic == generator.PAYMENTS]
    assert any(first[generator.PAYMENTS, key] < first.get((generator.ORDERS, key), -1) for key in early)


def test_changes_of_the_customers_table_keep_their_order(generator: ModuleType) -> None:
    changes = [one.value for one in generator.messages(500, 2) if one.topic == generator.CUSTOMERS]
    places = [json.loads(one)["source"]["lsn"] for one in changes if one is not None]
    assert places == sorted(places)
    assert None in changes, "no tombstone"
