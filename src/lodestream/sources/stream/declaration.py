"""A source of Structured Streaming, as declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lodestream.pipeline.sources import SourceDeclaration


@dataclass(frozen=True)
class Stream(SourceDeclaration):
    """Any Structured Streaming source, by its Spark format name."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None
    raw = False
    remote = True

    def describe(self) -> str:
        return f"stream {self.format}"

    @property
    def schema_text(self) -> str | None:
        return self.schema
