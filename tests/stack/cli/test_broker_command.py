"""`lode broker`, for people and for programs."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Consumer

pytestmark = pytest.mark.timeout(180)


PIPELINE = """
from lodestream import Kafka, Pipeline

shop = Pipeline("shop")
shop.bronze("orders_raw", Kafka("shop.orders"))
"""


def sent(lode, bootstrap):
    """Events as arguments and as lines of standard input; what a consumer then finds."""
    (lode.folder / "lode.toml").touch()
    (lode.folder / "pipeline.py").write_text(PIPELINE)
    first = lode("broker", "send", "shop.orders", '{"n": 1}')
    assert first.out == "1 event sent to shop.orders, the last at shop.orders/0@0, for bronze.orders_raw\n"
    lode("broker", "send", "shop.orders", "2", "--key", "k", "--header", "of=a=b")
    for words, lines in ((), '\n{"n": 1}\r\n'), (("--key", "k", "--header", "of=a=b"), "2"):
        process = lode.start("broker", "send", "shop.orders", "--json", *words, given=lines)
        assert json.loads(process.communicate(timeout=60)[0])["events"] == 1
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "auto.offset.reset": "earliest"})
    consumer.subscribe(["shop.orders"])
    found = consumer.consume(4, timeout=30)
    consumer.close()
    return [(one.key(), one.value(), one.headers()) for one in found]


def test_start_find_look_and_stop(lode):
    started = lode("broker", "start", "--json").json
    try:
        assert started["started"] is True
        again = lode("broker", "start", "--json").json
        assert (again["started"], again["pid"]) == (False, started["pid"])
        assert started["bootstrap"] in lode("broker", "status").out
        assert "Kafka Server started" in lode("broker", "logs").out
        assert sent(lode, started["bootstrap"]) == [(None, b'{"n": 1}', None), (b"k", b"2", [("of", b"a=b")])] * 2
        doctor = {check["name"]: check for check in lode("doctor", "--json").json["checks"]}
        assert started["bootstrap"] in doctor["broker"]["found"]
    finally:
        assert lode("broker", "stop", "--json").json == {"stopped": True}
    assert lode("broker", "status", "--json").json == {"running": False}
    assert lode("broker", "stop", "--json").json == {"stopped": False}
