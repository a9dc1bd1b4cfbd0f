"""Lodestream: a streaming medallion lakehouse for Python teams."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lodestream.errors import LodeError
    from lodestream.pipeline import Pipeline
    from lodestream.sources import Files, Kafka, Stream
    from lodestream.sources.codecs import Avro, Csv, Debezium, Json, Protobuf, Raw

__all__ = [
    "Avro",
    "Csv",
    "Debezium",
    "Files",
    "Json",
    "Kafka",
    "LodeError",
    "Pipeline",
    "Protobuf",
    "Raw",
    "Stream",
]

# Imported when asked for: a command that only shows its help needs none of it.
_LATER = {
    "errors": ("LodeError",),
    "pipeline": ("Pipeline",),
    "sources": ("Files", "Kafka", "Stream"),
    "sources.codecs": ("Avro", "Csv", "Debezium", "Json", "Protobuf", "Raw"),
}


def __getattr__(name: str) -> Any:
    if name in _LATER:  # as after `import lodestream.errors`
        return import_module(f"{__name__}.{name}")
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
