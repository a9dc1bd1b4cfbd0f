"""Writer schemas by id, fetched once per process and kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

from lodestream.sources.codecs.codec import BrokenRow
from lodestream.sources.codecs.registry import RegisteredSchema, Registry, UnknownSchema

Parsed = TypeVar("Parsed")
_UNKNOWN_FOR = 10.0


class SchemaCache(Generic[Parsed]):
    """What a codec made of each schema of a registry. Lives in the process, so reused workers keep it."""

    def __init__(self, url: str, parse: Callable[[Registry, RegisteredSchema], Parsed]) -> None:
        self._registry = Registry(url)
        self._parse = parse
        self._known: dict[int, Parsed] = {}
        self._unknown: dict[int, tuple[float, str]] = {}

    def get(self, schema_id: int) -> Parsed:
        """Raises BrokenRow for an id that the registry does not have or whose schema cannot be used, and
        RegistryUnavailable when it does not answer: then nothing can be said about the row."""
        found = self._known.get(schema_id)
        if found is None:
            self._refuse_known_stranger(schema_id)
            found = self._known[schema_id] = self._fetch(schema_id)
        return found

    def _refuse_known_stranger(self, schema_id: int) -> None:
        # Not for ever: a producer may have sent its first message a moment before its schema arrived.
        until, reason = self._unknown.get(schema_id, (0.0, ""))
        if time.monotonic() < until:
            raise BrokenRow(reason)

    def _fetch(self, schema_id: int) -> Parsed:
        try:
            return self._parse(self._registry, self._registry.by_id(schema_id))
        except (UnknownSchema, ValueError) as error:
            why = "is not in the registry" if isinstance(error, UnknownSchema) else f"cannot be used: {error}"
            reason = f"schema {schema_id} {why}"
            self._unknown[schema_id] = (time.monotonic() + _UNKNOWN_FOR, reason)
            raise BrokenRow(reason) from None
