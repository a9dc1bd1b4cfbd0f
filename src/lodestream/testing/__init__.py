"""What users need to test their own pipelines: docs/testing.md shows each part."""

from lodestream.tables.memory import MemoryStore, MemoryTable
from lodestream.testing.broker import kafka_broker
from lodestream.testing.events import Event
from lodestream.testing.reading import NotMade
from lodestream.testing.run_once import Ran, run_once
from lodestream.testing.sandbox import Sandbox, Verdict

__all__ = [
    "Event",
    "MemoryStore",
    "MemoryTable",
    "NotMade",
    "Ran",
    "Sandbox",
    "Verdict",
    "kafka_broker",
    "run_once",
]
