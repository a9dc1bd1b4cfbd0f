"""The stream of events: blocks of trips, soiled, encoded, cut into batches of any size.

The same seed, lap and dirt give the same bytes, whatever the chunk size and wherever the stream starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count as count_from

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .block import Block, encode_block, make_block
from .counts import Counts, count
from .dirt import Dirt
from .draws import BLOCK
from .month import MONTH_TRIPS
from .wire import Encode

CLEAN = Dirt()
_LARGEST_CHUNK = 1_000_000  # Arrow counts the bytes of one array in 32 bits


@dataclass(frozen=True, slots=True)
class Batch:
    """Events in the order to send them. Keys are null unless the events carry a trip_uid."""

    start: int
    keys: pa.Array
    values: pa.Array
    due: NDArray[np.integer]  # when each event happens on the wire, epoch seconds; a further lap is a month on
    counts: Counts

    def __len__(self) -> int:
        return len(self.values)


def events(
    n: int | None,
    seed: int = 0,
    dirt: Dirt = CLEAN,
    *,
    start_at: int = 0,
    chunk: int = BLOCK,
    lap: int | None = None,
    encode: Encode = encode_block,
) -> Iterator[Batch]:
    """Events `start_at` to `n` of the stream; without `n` it never ends. Memory stays at a few chunks.

    Each `lap` events walk once through January 2024. A finite stream is one lap, an endless one has the month's
    2,964,624 trips to a lap, unless told otherwise.
    """
    if not 0 < chunk <= _LARGEST_CHUNK:
        raise ValueError(f"chunk must be 1 to {_LARGEST_CHUNK:,} events, not {chunk:,}")
    pieces: list[Batch] = []
    for block, start, stop in _blocks(n, seed, dirt, start_at, lap):
        keys, values = encode(block, seed, dirt.keyed)
        while start < stop:
            end = min(stop, start + chunk - sum(map(len, pieces)))
            rows = slice(start % BLOCK, start % BLOCK + end - start)
            counts = count(block.trips, block.kinds, rows)
            pieces.append(Batch(start, keys[rows], values[rows], block.trips["due"][rows], counts))
            start = end
            if sum(map(len, pieces)) == chunk:
                yield _merge(pieces)
                pieces = []
    if pieces:
        yield _merge(pieces)


def expected(n: int, seed: int = 0, dirt: Dirt = CLEAN, *, start_at: int = 0, lap: int | None = None) -> Counts:
    """What `events` with the same arguments contains, without encoding it."""
    total = Counts()
    for block, start, stop in _blocks(n, seed, dirt, start_at, lap):
        total += count(block.trips, block.kinds, slice(start % BLOCK, start % BLOCK + stop - start))
    return total


def _blocks(n: int | None, seed: int, dirt: Dirt, start_at: int, lap: int | None) -> Iterator[tuple[Block, int, int]]:
    """Each block that holds wanted slots, with the first and the end of those slots."""
    lap = lap or n or MONTH_TRIPS
    for first in count_from(start_at - start_at % BLOCK, BLOCK):
        if n is not None and first >= n:
            return
        stop = first + BLOCK if n is None else min(first + BLOCK, n)
        yield make_block(first, stop - first, seed, dirt, lap), max(first, start_at), stop


def _merge(pieces: list[Batch]) -> Batch:
    if len(pieces) == 1:
        return pieces[0]
    return Batch(
        pieces[0].start,
        pa.concat_arrays([piece.keys for piece in pieces]),
        pa.concat_arrays([piece.values for piece in pieces]),
        np.concatenate([piece.due for piece in pieces]),
        sum((piece.counts for piece in pieces), Counts()),
    )
