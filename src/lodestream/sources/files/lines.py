"""Lines out of a stream, a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

_CHUNK = 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TooLarge(Exception):
    """A line or value is longer than allowed."""


def lines(stream: Any, limit: int) -> Iterator[list[bytes]]:
    """The lines of each chunk, split at `\\n`; what follows the last one is a line unless it is empty."""
    pieces: list[bytes] = []
    held, first = 0, True
    while chunk := stream.read(_CHUNK):
        head, *rest = (chunk.removeprefix(_BYTE_ORDER_MARK) if first else chunk).split(b"\n")
        first = False
        # Pieces are joined once: a line of many chunks must not be copied again with each.
        pieces.append(head)
        held += len(head)
        if held > limit:
            raise TooLarge
        if rest:
            yield [b"".join(pieces), *rest[:-1]]
            pieces, held = [rest[-1]], len(rest[-1])
    if held:
        yield [b"".join(pieces)]


def records(chunks: Iterable[list[bytes]], limit: int) -> Iterator[list[bytes]]:
    """Lines joined while a quote is open. A quote inside a quoted value is doubled, so an even count is closed."""
    pending: list[bytes] = []
    held = 0
    for chunk in chunks:
        whole = []
        for line in chunk:
            odd = line.count(b'"') % 2 == 1
            if not pending and not odd:
                whole.append(line)
                continue
            pending.append(line)
            held += len(line)
            if held > limit:
                raise TooLarge
            if odd and len(pending) > 1:
                whole.append(b"\n".join(pending))
                pending, held = [], 0
        yield whole
    if pending:
        yield [b"\n".join(pending)]
