"""Randomness that any slot of the stream can find again: one small generator per block of slots.

Row r of a block always gets the same lanes, however many rows of the block are made, so a stream can start
anywhere and be cut into chunks of any size without changing a byte.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

BLOCK = 16_384
LANES = 24
_WORDS = LANES // 4

Lane = NDArray[np.uint16]


def draw_lanes(seed: int, block: int, rows: int) -> NDArray[np.uint16]:
    """`rows` x LANES independent 16-bit numbers of one block."""
    bits = np.random.SFC64(np.random.SeedSequence((seed, block)))
    words = bits.random_raw(rows * _WORDS).astype("<u8", copy=False)
    return words.view("<u2").reshape(rows, LANES)


def wide(high: Lane, low: Lane) -> NDArray[np.int64]:
    """Two lanes as one 32-bit number, for choices rarer than 1 in 65,536."""
    return (high.astype(np.int64) << 16) | low


def choices(weights: Mapping[int, float], dtype: type[np.signedinteger] = np.int16) -> NDArray[np.signedinteger]:
    """A table that turns a lane into a value: `table[lane]` follows the weights, each value at least once."""
    values = np.fromiter(weights.keys(), dtype=dtype)
    share = np.fromiter(weights.values(), dtype=np.float64)
    counts = np.maximum(1, np.floor(share / share.sum() * 65_536)).astype(np.int64)
    counts[np.argmax(counts)] += 65_536 - counts.sum()
    return np.repeat(values, counts)
