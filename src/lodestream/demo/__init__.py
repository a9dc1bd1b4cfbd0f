"""The taxi stream as a demonstration: a broker, a generator and a pipeline in one process tree."""

from lodestream.demo.folder import DemoFolder
from lodestream.demo.generator import Generator
from lodestream.demo.memory import PeakMemory
from lodestream.demo.show import Demo, Seconds, events_in_topic, summary

__all__ = ["Demo", "DemoFolder", "Generator", "PeakMemory", "Seconds", "events_in_topic", "summary"]
