"""Events that no reader can use: cut short, not JSON, not an object, not a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def _cut(value: bytes, size: int) -> bytes:
    return value[: 1 + size % (len(value) - 1)]


def _bytes(value: bytes, size: int) -> bytes:
    return b"\x00\xff\xfe" + value[size % 64 : size % 64 + 40][::-1]


def _empty(value: bytes, size: int) -> bytes:  # noqa: ARG001
    return b""


def _array(value: bytes, size: int) -> bytes:
    return b'["%d",%d]' % (len(value), size)


def _no_time(value: bytes, size: int) -> bytes:
    start = value.index(b'"tpep_pickup_datetime":"') + len(b'"tpep_pickup_datetime":"')
    return value[:start] + b"day %d" % size + value[value.index(b'"', start) :]


def _prose(value: bytes, size: int) -> bytes:
    return b"meter %d lost its connection after %d bytes" % (size, len(value))


def _cut_inside(value: bytes, size: int) -> bytes:
    """Within the pickup time: a Protobuf message that is cut between two fields is a good one with less in it."""
    return value[: 10 + size % 18]


def _no_magic(value: bytes, size: int) -> bytes:
    return bytes([1 + size % 255]) + value[1:]


def _no_schema(value: bytes, size: int) -> bytes:
    return b"\0" + (0x7FFF0000 + size).to_bytes(4, "big") + value[5:]


Style = Callable[[bytes, int], bytes]
STYLES: tuple[Style, ...] = (_cut, _bytes, _empty, _array, _no_time, _prose)
# For messages with a schema's id in front.
WIRE_STYLES: tuple[Style, ...] = (_cut_inside, _bytes, _empty, _array, _no_magic, _no_schema)


def spoil(
    values: pa.Array,
    where: NDArray[np.bool_],
    style: NDArray[np.uint16],
    size: NDArray[np.uint16],
    styles: tuple[Style, ...] = STYLES,
) -> pa.Array:
    """Make the values at `where` unreadable; the rest stay as they are."""
    rows = np.flatnonzero(where)
    if not len(rows):
        return values
    good = values.take(pa.array(rows)).to_pylist()
    bad = [
        styles[kind % len(styles)](value, extent)
        for value, kind, extent in zip(good, style[rows].tolist(), size[rows].tolist(), strict=True)
    ]
    return pc.replace_with_mask(values, pa.array(where), pa.array(bad, pa.binary()))
