"""Sources. This is the list of those that are built in: importing one registers it."""

from lodestream.pipeline.sources import Coordinates, SourceDeclaration
from lodestream.sources.files import Files
from lodestream.sources.kafka import Kafka
from lodestream.sources.kinds import Opening, Waiting, register_source
from lodestream.sources.source import Position, PulledSource, Source
from lodestream.sources.stream import Stream

__all__ = [
    "Coordinates",
    "Files",
    "Kafka",
    "Opening",
    "Position",
    "PulledSource",
    "Source",
    "SourceDeclaration",
    "Stream",
    "Waiting",
    "register_source",
]
