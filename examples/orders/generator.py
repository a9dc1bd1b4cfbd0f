"""A small shop that talks badly: late, doubled, out of order, and never in one spelling.

python generator.py --bootstrap HOST:PORT [--orders 1000] [--seed 7]
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

ORDERS, PAYMENTS, REFUNDS = "shop.orders", "shop.payments", "shop.refunds"
SHIPMENTS, CUSTOMERS = "shop.shipments", "shop.public.customers"
TOPICS = (ORDERS, PAYMENTS, REFUNDS, SHIPMENTS, CUSTOMERS)
REGIONS = ("NORTH", "SOUTH", "EAST", "WEST")
BEGIN = datetime(2024, 3, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Message:
    topic: str
    key: bytes
    value: bytes | None


def messages(orders: int, seed: int) -> list[Message]:
    """Everything that happens around so many orders, in the order in which it arrives."""
    rng = random.Random(seed)
    customers = max(5, orders // 8)
    told = list(_customers(rng, customers))
    events: list[Message] = []
    for number in range(1, orders + 1):
        events += _order(rng, number, customers)
    events += [rng.choice(events) for _ in range(len(events) // 50)]  # told twice
    rng.shuffle(events)
    return list(_interleaved(rng, told, events))


def _order(rng: random.Random, number: int, customers: int) -> Iterator[Message]:
    """One order's life; some of its steps never happen, or happen in the wrong order."""
    at = BEGIN + timedelta(seconds=rng.randrange(5 * 86400))
    amount = Decimal(rng.randrange(500, 50_000)) / 100
    order: dict[str, Any] = {
        _name(rng, "order_id", "order", "orderId"): _id(rng, "O-", number),
        _name(rng, "customer_id", "customer", "cust"): _id(rng, "cust_", rng.randint(1, customers + 2)),
        "version": 1,
        _name(rng, "amount", "total"): _money(rng, amount),
        _name(rng, "placed_at", "ts"): _time(rng, at),
    }
    if rng.random() < 0.7:
        order["region"] = rng.choice((*REGIONS, "north", "West"))
    if rng.random() > 0.03:
        yield _message(rng, ORDERS, number, order)
    if rng.random() < 0.1:
        amount += 5
        total = {"amount": _money(rng, amount), "version": 2}
        yield _message(rng, ORDERS, number, {**{k: v for k, v in order.items() if k != "total"}, **total})
    if rng.random() < 0.85:
        yield from _paid(rng, number, amount, at)


def _paid(rng: random.Random, number: int, amount: Decimal, at: datetime) -> Iterator[Message]:
    paid_at = at + timedelta(minutes=rng.randrange(1, 600))
    parts = [amount] if rng.random() < 0.9 else [amount / 2, amount / 2 + Decimal("0.01")]
    for nth, part in enumerate(parts):
        payment = {"payment_id": _id(rng, "PAY-", 10 * number + nth), "amount": _money(rng, round(part, 2))}
        yield _message(rng, PAYMENTS, number, {**payment, **_of(rng, number), "paid_at": _time(rng, paid_at)})
    if rng.random() < 0.85:
        shipped_at = paid_at + timedelta(minutes=rng.randrange(-30, 4000))
        parcel = {"shipment_id": _id(rng, "S-", number), "shipped_at": _time(rng, shipped_at), **_of(rng, number)}
        if rng.random() < 0.6:
            parcel["carrier"] = rng.choice(("post", "bike", "truck"))
        yield _message(rng, SHIPMENTS, number, parcel)
    if rng.random() < 0.1:
        back = {
            "refund_id": _id(rng, "R-", number),
            "amount": _money(rng, amount if rng.random() < 0.9 else amount * 2),
        }
        refunded_at = _time(rng, paid_at + timedelta(days=2))
        yield _message(rng, REFUNDS, number, {**back, **_of(rng, number), "refunded_at": refunded_at})


def _customers(rng: random.Random, count: int) -> Iterator[Message]:
    """As Debezium tells a table: a snapshot, then moves to other regions, deletes with their tombstones."""
    rows = {
        number: {"id": number, "name": f"Customer {number}", "region": rng.choice(REGIONS)}
        for number in range(1, count + 1)
    }
    lsn = 1000
    for row in rows.values():
        yield _change("r", None, row, lsn)
    for _ in range(count // 2):
        lsn += rng.randrange(8, 200)
        number = rng.choice(sorted(rows))
        before = rows[number]
        if rng.random() < 0.15 and len(rows) > 2:
            yield _change("d", rows.pop(number), None, lsn)
            yield Message(CUSTOMERS, b'{"id":%d}' % number, None)
        else:
            rows[number] = {**before, "region": rng.choice(REGIONS)}
            yield _change("u", before, rows[number], lsn)


def _change(op: str, before: dict[str, Any] | None, after: dict[str, Any] | None, lsn: int) -> Message:
    key = {"id": (after or before or {})["id"]}
    source = {"lsn": lsn, "ts_ms": 1_709_251_200_000 + lsn, "table": "customers"}
    envelope = {"before": before, "after": after, "op": op, "ts_ms": source["ts_ms"] + 5, "source": source}
    return Message(CUSTOMERS, json.dumps(key, separators=(",", ":")).encode(), json.dumps(envelope).encode())


def _interleaved(rng: random.Random, told: list[Message], events: list[Message]) -> Iterator[Message]:
    """Changes of one table keep their order, as they do in a topic; everything else comes as it comes."""
    turns = [True] * len(told) + [False] * len(events)
    rng.shuffle(turns)
    changes, others = iter(told), iter(events)
    for of_a_customer in turns:
        yield next(changes if of_a_customer else others)


def _message(rng: random.Random, topic: str, order: int, event: dict[str, Any]) -> Message:
    chance = rng.random()
    if chance < 0.005:
        event.pop(rng.choice(sorted(event)))
    text = json.dumps(event, default=str)
    if chance > 0.995:
        text = text[: rng.randrange(1, len(text))]
    return Message(topic, str(order).encode(), text.encode())


def _of(rng: random.Random, order: int) -> dict[str, Any]:
    return {_name(rng, "order_id", "order", "orderId"): _id(rng, "O-", order)}


def _name(rng: random.Random, *names: str) -> str:
    return rng.choice(names)


def _id(rng: random.Random, prefix: str, number: int) -> int | str:
    return rng.choice((number, f"{prefix}{number}", f"{prefix.strip('-_').lower()}_{number:06d}"))


def _time(rng: random.Random, at: datetime) -> int | str:
    spelt: tuple[int | str, ...] = (at.isoformat(), int(at.timestamp() * 1000), f"{at:%d/%m/%Y %H:%M:%S}")
    return rng.choice(spelt)


def _money(rng: random.Random, amount: Decimal) -> float | str:
    return rng.choice((float(amount), f"{amount:.2f}", f"{amount:.2f} EUR"))


def main() -> None:
    from confluent_kafka import Producer

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--orders", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    producer = Producer({"bootstrap.servers": given.bootstrap, "linger.ms": 20})
    for message in messages(given.orders, given.seed):
        producer.produce(message.topic, message.value, key=message.key)
        producer.poll(0)
    producer.flush()


if __name__ == "__main__":
    main()
