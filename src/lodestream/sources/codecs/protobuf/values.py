"""Protobuf messages as plain values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lodestream.sources.codecs.codec import BrokenRow, Limits
from lodestream.sources.codecs.protobuf.files import WRAPPERS

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Walk:
    """One message's way into plain values, within the limits."""

    def __init__(self, limits: Limits) -> None:
        self._left = limits.items
        self._limits = limits

    def message(self, message: Any) -> dict[str, Any]:
        """Every declared field by name: unset ones with presence are null, others have their default."""
        return {found.name: self._field(message, found) for found in message.DESCRIPTOR.fields}

    def _field(self, message: Any, found: FieldDescriptor) -> Any:
        if found.has_presence and not message.HasField(found.name):
            return None
        value = getattr(message, found.name)
        inner = found.message_type
        if inner is not None and inner.GetOptions().map_entry:
            return self._map(value, inner.fields_by_name["value"])
        if found.is_repeated:
            self._spend(len(value))
            return [self._one(item, found) for item in value]
        return self._one(value, found)

    def _map(self, value: Any, kind: FieldDescriptor) -> dict[Any, Any]:
        self._spend(len(value))
        return {str(key): self._one(value[key], kind) for key in value}

    def _one(self, value: Any, found: FieldDescriptor) -> Any:
        if found.message_type is not None:
            return self._inner(value, found.message_type.full_name)
        if found.enum_type is not None:
            named = found.enum_type.values_by_number.get(value)
            return named.name if named is not None else str(value)
        if found.type in (found.TYPE_UINT64, found.TYPE_FIXED64):
            return Decimal(value)
        return value

    def _inner(self, value: Any, name: str) -> Any:
        if name == "google.protobuf.Timestamp":
            return _instant(value)
        return value.value if name in WRAPPERS else self.message(value)

    def _spend(self, items: int) -> None:
        self._left -= items
        if self._left < 0:
            raise BrokenRow(f"more than {self._limits.items:,} items")


def _instant(value: Any) -> Any:
    """A datetime, or text that no column type takes when the moment is not one: its row then says so."""
    if value.nanos % 1000 or not 0 <= value.nanos < 1_000_000_000:
        return f"{value.seconds}.{value.nanos:09d}"
    try:
        return _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    except OverflowError:
        return str(value.seconds)
