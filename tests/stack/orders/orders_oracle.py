"""What the shop's tables must hold, worked out from its messages by other code: Python's and DuckDB's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import duckdb

NAMES = {
    "order": "order_id",
    "orderId": "order_id",
    "customer": "customer_id",
    "cust": "customer_id",
    "total": "amount",
}
TABLES = {
    "orders": ("shop.orders", ("order_id", "customer_id", "amount", "placed_at")),
    "payments": ("shop.payments", ("payment_id", "order_id", "amount", "paid_at")),
    "refunds": ("shop.refunds", ("refund_id", "order_id", "amount", "refunded_at")),
    "shipments": ("shop.shipments", ("shipment_id", "order_id", "shipped_at")),
}
SCHEMAS = {
    "orders": "order_id bigint, customer_id bigint, version int, region varchar, amount decimal(12,2), "
    "placed_at timestamp",
    "payments": "payment_id bigint, order_id bigint, amount decimal(12,2), paid_at timestamp",
    "refunds": "refund_id bigint, order_id bigint, amount decimal(12,2), refunded_at timestamp, reason varchar",
    "shipments": "shipment_id bigint, order_id bigint, carrier varchar, shipped_at timestamp",
    "customers": "customer_id bigint, name varchar, region varchar",
}
GOLD = {
    "order_facts": """
        SELECT k.order_id, o.customer_id, o.region, o.placed_at, coalesce(o.amount, 0) AS ordered,
          coalesce(p.paid, 0) AS paid, coalesce(r.refunded, 0) AS refunded, p.paid_at, s.shipped_at
        FROM (SELECT order_id FROM orders UNION SELECT order_id FROM payments UNION SELECT order_id FROM refunds
          UNION SELECT order_id FROM shipments) k
        LEFT JOIN orders o USING (order_id)
        LEFT JOIN (SELECT order_id, sum(amount) paid, min(paid_at) paid_at FROM payments GROUP BY 1) p USING (order_id)
        LEFT JOIN (SELECT order_id, sum(amount) refunded FROM refunds GROUP BY 1) r USING (order_id)
        LEFT JOIN (SELECT order_id, min(shipped_at) shipped_at FROM shipments GROUP BY 1) s USING (order_id)""",
    "daily_revenue": """
        SELECT coalesce(f.region, c.region, 'UNKNOWN') AS region, placed_at::date AS day, count(*) AS orders,
          sum(paid) AS paid, sum(refunded) AS refunded, sum(paid - refunded) AS net
        FROM order_facts f LEFT JOIN customers c ON c.customer_id = f.customer_id GROUP BY 1, 2""",
    "funnel": """
        SELECT placed_at::date AS day, count(*) AS placed, count(*) FILTER (paid > 0) AS paid,
          count(*) FILTER (paid > 0 AND shipped_at IS NOT NULL) AS shipped,
          count(*) FILTER (paid > 0 AND shipped_at IS NOT NULL AND refunded = 0) AS kept
        FROM order_facts WHERE placed_at IS NOT NULL GROUP BY 1""",
    "customer_features": """
        SELECT customer_id, count(*) AS orders, sum(ordered) AS ordered, sum(paid - refunded) AS spent,
          max(placed_at) AS last_order_at, max(ordered) AS largest_order,
          count(*) FILTER (refunded > 0) AS refunded_orders
        FROM order_facts WHERE customer_id IS NOT NULL GROUP BY 1""",
    "payment_to_shipment": """
        SELECT paid_at::date AS day, count(*) AS orders, sum(epoch(shipped_at - paid_at))::bigint AS seconds,
          max(epoch(shipped_at - paid_at))::bigint AS slowest
        FROM order_facts WHERE shipped_at >= paid_at GROUP BY 1""",
    "order_anomalies": """
        SELECT * FROM (SELECT order_id, placed_at IS NULL AS never_placed,
          shipped_at IS NOT NULL AND paid_at IS NULL AS shipped_unpaid, shipped_at < paid_at AS shipped_before_paid,
          placed_at IS NOT NULL AND paid > ordered AS overpaid, refunded > paid AS refunded_too_much FROM order_facts)
        WHERE never_placed OR shipped_unpaid OR shipped_before_paid OR overpaid OR refunded_too_much""",
}


def expected(messages: Iterable[Any]) -> tuple[dict[str, list[dict[str, Any]]], dict[str, int]]:
    """Every Silver and Gold table as rows, and the number of dead letters per Silver table."""
    told = list(messages)
    silver, dead = {}, {}
    for table, (topic, required) in TABLES.items():
        silver[table], dead[table] = _silver(table, [m.value for m in told if m.topic == topic], required)
    silver["customers"] = _customers([m.value for m in told if m.topic == "shop.public.customers"])
    return {**silver, **_gold(silver)}, dead


def _silver(table: str, values: list[bytes], required: tuple[str, ...]) -> tuple[list[dict[str, Any]], int]:
    kept: dict[int, dict[str, Any]] = {}
    dead = 0
    for value in values:
        row = _row(table, value)
        if row is None or any(row.get(name) is None for name in required):
            dead += 1
            continue
        before = kept.get(row[required[0]])
        if before is None or row.get("version", 1) > before.get("version", 1):
            kept[row[required[0]]] = row
    return list(kept.values()), dead


def _row(table: str, value: bytes) -> dict[str, Any] | None:
    try:
        raw = json.loads(value, parse_float=str)
    except ValueError:
        return None
    own = {NAMES.get(name, name): found for name, found in raw.items()}
    if "ts" in own:
        own["placed_at"] = own.pop("ts")
    row = {name: _read(name, own.get(name)) for name, *_ in (part.split() for part in SCHEMAS[table].split(", "))}
    if table == "orders":
        row["version"] = row["version"] or 1
    return row


def _read(name: str, value: Any) -> Any:
    if value is None:
        return None
    text = str(value)
    if name.endswith("_id"):
        return int(found[0]) if (found := re.findall(r"\d+$", text)) else None
    if name.endswith("_at"):
        return _moment(text)
    if name == "amount":
        return Decimal(text.removesuffix(" EUR"))
    return text.upper() if name == "region" else value


def _moment(text: str) -> datetime:
    if text.isdigit():
        at = datetime.fromtimestamp(int(text) / 1000, UTC)
    elif "/" in text:
        at = datetime.strptime(text, "%d/%m/%Y %H:%M:%S").replace(tzinfo=UTC)
    else:
        at = datetime.fromisoformat(text)
    return at.astimezone(UTC).replace(tzinfo=None)


def _customers(values: list[bytes | None]) -> list[dict[str, Any]]:
    """Changes of one customer are in one partition, so the order of sending is the order of the database."""
    rows: dict[int, dict[str, Any]] = {}
    for envelope in (json.loads(value) for value in values if value is not None):
        if envelope["op"] == "d":
            rows.pop(envelope["before"]["id"], None)
        else:
            after = envelope["after"]
            rows[after["id"]] = {"customer_id": after["id"], "name": after["name"], "region": after["region"]}
    return list(rows.values())


def _gold(silver: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    base = duckdb.connect()
    for table, schema in SCHEMAS.items():
        base.execute(f"CREATE TABLE {table} ({schema})")
        names = [part.split()[0] for part in schema.replace("(12,2)", "").split(", ")]
        if silver[table]:
            marks = ", ".join("?" * len(names))
            base.executemany(
                f"INSERT INTO {table} VALUES ({marks})", [[row[name] for name in names] for row in silver[table]]
            )
    found = {}
    for table, query in GOLD.items():
        base.execute(f"CREATE TABLE {table} AS {query}")
        found[table] = base.execute(f"SELECT * FROM {table}").to_arrow_table().to_pylist()
    return found
