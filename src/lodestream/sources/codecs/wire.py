"""The schema registry's wire format: a zero byte, the schema's id in four bytes, then the message."""

from __future__ import annotations

from lodestream.sources.codecs.codec import BrokenRow

_HEADER = 5


def split(value: bytes) -> tuple[int, bytes]:
    """The schema's id and the message."""
    if len(value) < _HEADER:
        raise BrokenRow(f"{len(value)} bytes, too short for a schema id")
    if value[0] != 0:
        raise BrokenRow(f"first byte is 0x{value[0]:02x}, not the 0x00 of the registry's wire format")
    return int.from_bytes(value[1:_HEADER], "big"), value[_HEADER:]


def frame(schema_id: int, message: bytes, indexes: tuple[int, ...] | None = None) -> bytes:
    """The message with its schema's id, and for Protobuf the place of its type in the schema."""
    path = b"" if indexes is None else _write_indexes(indexes)
    return b"\0" + schema_id.to_bytes(4, "big") + path + message


def split_indexes(message: bytes) -> tuple[tuple[int, ...], bytes]:
    """Which message type of a Protobuf schema this is, outermost first, and the message itself."""
    count, at = read_varint(message, 0)
    size = _zigzag(count)
    if not 0 <= size <= 32:
        raise BrokenRow(f"{size} message indexes")
    indexes = []
    for _ in range(size):
        found, at = read_varint(message, at)
        indexes.append(_zigzag(found))
    return tuple(indexes) or (0,), message[at:]


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number in seven-bit groups, and where it ends."""
    found = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise BrokenRow(f"truncated at byte {len(data)}" if at >= len(data) else f"no number at byte {at}")
        found |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return found, at
        shift += 7


def _zigzag(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def _write_indexes(indexes: tuple[int, ...]) -> bytes:
    if indexes == (0,):
        return b"\0"
    return b"".join(_write_varint(number << 1) for number in (len(indexes), *indexes))


def _write_varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
