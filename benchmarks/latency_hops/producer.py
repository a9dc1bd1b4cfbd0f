"""A steady stream of small taxi-like events: BOOTSTRAP TOPIC RATE SECONDS."""

from __future__ import annotations

import json
import random
import signal
import sys
import threading
import time

from confluent_kafka import Producer


def main(bootstrap: str, topic: str, rate: str, seconds: str) -> None:
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    draw = random.Random(7)
    start = time.monotonic()
    sent = 0
    while not ended.is_set() and (passed := time.monotonic() - start) < float(seconds):
        while sent < passed * int(rate):
            event = {"id": sent, "zone": draw.randint(1, 265), "fare": round(draw.random() * 60, 2)}
            producer.produce(topic, json.dumps({**event, "at": "2024-01-15T08:30:00"}).encode())
            sent += 1
        producer.poll(0)
        time.sleep(0.01)
    producer.flush(10)


if __name__ == "__main__":
    main(*sys.argv[1:])
