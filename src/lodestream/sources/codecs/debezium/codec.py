"""Debezium's envelope: the row after the change (before it, for a delete), and what happened to it.

Beside the row's own columns come those that Debezium's own flattening adds, under its names: `__op` (c, u, d, r, t),
`__deleted`, `__ts_ms`, `__source_ts_ms`, `__lsn`, `__sequence`, `__table`; and `__before`, the row before the change.
A tombstone (a null value, sent after a delete for compaction) is a good row whose `__op` is `tombstone`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lodestream.contracts.types import Type
from lodestream.sources.codecs.codec import BrokenRow, Limits, RecordCodec, RowCodec
from lodestream.sources.codecs.exact import read_row
from lodestream.sources.codecs.shape import Column, Shape

OPERATIONS = ("c", "u", "d", "r", "t", "m")
TOMBSTONE = "tombstone"
_META = (
    ("__op", "string"), ("__deleted", "boolean"), ("__ts_ms", "bigint"), ("__source_ts_ms", "bigint"),
    ("__lsn", "bigint"), ("__sequence", "string"), ("__table", "string"),
)  # fmt: skip
_ENVELOPE = Shape(tuple(Column(name, Type(kind), (name,)) for name, kind in _META))


@dataclass(frozen=True)
class DebeziumCodec(RowCodec):
    """The envelope in JSON (with or without the schema beside the payload) or in Avro."""

    of: RecordCodec
    limits: Limits = field(default_factory=Limits)
    format = "debezium"

    @cached_property
    def shape(self) -> Shape:  # type: ignore[override]
        before = Column("__before", self.of.shape.type, ("__before",))
        return Shape((*self.of.shape.columns, *_ENVELOPE.columns, before))

    def _one(self, value: bytes | None) -> tuple[dict[str, Any] | None, str | None]:
        if value is None:
            return {"__op": TOMBSTONE, "__deleted": True}, None
        return super()._one(value)

    def row(self, value: bytes) -> dict[str, Any]:
        envelope = _payload(self.of.record(value))
        operation = envelope.get("op")
        if operation not in OPERATIONS:
            raise BrokenRow(f"op is {operation!r:.40}, not one of {', '.join(OPERATIONS)}")
        image = envelope.get("before" if operation == "d" else "after")
        if image is None and operation in ("c", "u", "r", "d"):
            raise BrokenRow(f"op {operation} without the row {'before' if operation == 'd' else 'after'} it")
        return {
            **self._image(image),
            **read_row(_meta(envelope, operation), _ENVELOPE),
            "__before": self._image(envelope.get("before")) if envelope.get("before") else None,
        }

    def _image(self, image: Any) -> dict[str, Any]:
        if image is None:
            return {}
        if not isinstance(image, dict):
            raise BrokenRow("before or after is not an object")
        return read_row(image, self.of.shape)


def _payload(event: dict[str, Any]) -> dict[str, Any]:
    """The envelope itself: Connect's JSON converter wraps it beside its schema unless told not to."""
    if "payload" not in event or "op" in event:
        return event
    payload = event["payload"]
    if not isinstance(payload, dict):
        raise BrokenRow("payload is not an object")
    return payload


def _meta(envelope: dict[str, Any], operation: str) -> dict[str, Any]:
    source = envelope.get("source")
    source = source if isinstance(source, dict) else {}
    return {
        "__op": operation,
        "__deleted": operation == "d",
        "__ts_ms": envelope.get("ts_ms"),
        "__source_ts_ms": source.get("ts_ms"),
        "__lsn": source.get("lsn"),
        "__sequence": source.get("sequence"),
        "__table": source.get("table"),
    }
