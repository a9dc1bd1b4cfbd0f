"""Any source of Structured Streaming: Spark plans its batches, the table remembers where they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lodestream.sources.kinds import Opening, register_source
from lodestream.sources.stream.declaration import Stream

if TYPE_CHECKING:
    from lodestream.sources.source import PulledSource

__all__ = ["Stream"]


def _pull(declared: Stream, opening: Opening) -> PulledSource:
    from lodestream.sources.stream.reading import open_stream

    return open_stream(declared, opening)


register_source(Stream, pull=_pull)
