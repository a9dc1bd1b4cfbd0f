"""The producer's side: a schema checked and registered, and records written in the registry's wire format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from lodestream.errors import ContractError
from lodestream.sources.codecs.registry import Kind, RegisteredSchema, Registry


class Serialiser(ABC):
    """Records to messages under one registered schema."""

    kind: Kind

    def __init__(self, registry: str, subject: str, schema: str) -> None:
        self.schema_id = register(Registry(registry), subject, RegisteredSchema(self.kind, schema))

    def serialise(self, records: Iterable[Mapping[str, Any]]) -> list[bytes]:
        """One message per record. Raises ValueError for a record that does not fit the schema."""
        return [self._one(record) for record in records]

    @abstractmethod
    def _one(self, record: Mapping[str, Any]) -> bytes: ...


def register(registry: Registry, subject: str, schema: RegisteredSchema) -> int:
    """The schema's id. A schema that breaks the subject's readers is refused, with the registry's explanation."""
    found = registry.check(subject, schema)
    if not found.ok:
        raise ContractError(
            f"the new schema of {subject} is not compatible with its latest version",
            why="; ".join(found.why) or "the registry gives no reason",
            fix="add fields with defaults and keep the others, or register it under a new subject",
        )
    return registry.register(subject, schema)
