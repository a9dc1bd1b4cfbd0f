"""How many parts a Protobuf message has, counted on its bytes before anything is built from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lodestream.sources.codecs.codec import BrokenRow, Limits
from lodestream.sources.codecs.wire import read_varint

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


def weigh(kind: Descriptor, body: bytes, limits: Limits) -> None:
    """Refuses a message of more parts than the limit. A part takes two bytes at least, so short ones need no count."""
    if len(body) > 2 * limits.items:
        _count(kind, body, (0, len(body)), limits.items, 0, limits)


def _count(kind: Descriptor, body: bytes, within: tuple[int, int], left: int, depth: int, limits: Limits) -> int:
    """How many parts are left to spend after those between the two places."""
    if depth > limits.depth:
        raise BrokenRow(f"nested deeper than {limits.depth}")
    at, end = within
    while at < end:
        tag, at = read_varint(body, at)
        left -= 1
        if left < 0:
            raise BrokenRow(f"more than {limits.items:,} items")
        if tag & 7 == _LENGTH:
            size, at = read_varint(body, at)
            if at + size > end:
                raise BrokenRow(f"truncated at byte {len(body)}")
            found = kind.fields_by_number.get(tag >> 3)
            if found is not None and found.message_type is not None:
                left = _count(found.message_type, body, (at, at + size), left, depth + 1, limits)
            at += size
        else:
            at = _pass(tag & 7, body, at)
    return left


def _pass(kind: int, body: bytes, at: int) -> int:
    if kind == _VARINT:
        return read_varint(body, at)[1]
    if kind in (_FIXED64, _FIXED32):
        return at + (8 if kind == _FIXED64 else 4)
    raise BrokenRow(f"malformed at byte {at} (groups are not read)")
