"""The words of the Open Data Contract Standard (v3.0.2, and what v3.1.0 adds), and ours beside them."""

from __future__ import annotations

from lodestream.contracts.limits import limits_by_word

API_VERSION = "v3.0.2"
API_VERSIONS = ("v3.0.0", "v3.0.1", "v3.0.2", "v3.1.0")

ROOT = (
    "apiVersion", "kind", "id", "name", "version", "status", "tenant", "domain", "dataProduct", "tags",
    "description", "servers", "schema", "support", "price", "team", "roles", "slaDefaultElement",
    "slaProperties", "authoritativeDefinitions", "customProperties", "contractCreatedTs",
)  # fmt: skip
DESCRIPTION = ("purpose", "usage", "limitations", "authoritativeDefinitions", "customProperties")
OBJECT = (
    "id", "name", "logicalType", "physicalType", "physicalName", "description", "businessName", "tags",
    "dataGranularityDescription", "properties", "quality", "authoritativeDefinitions", "customProperties",
    "relationships",
)  # fmt: skip
PROPERTY = (
    "id", "name", "logicalType", "logicalTypeOptions", "physicalType", "physicalName", "description",
    "businessName", "tags", "required", "unique", "primaryKey", "primaryKeyPosition", "partitioned",
    "partitionKeyPosition", "classification", "encryptedName", "transformSourceObjects", "transformLogic",
    "transformDescription", "examples", "criticalDataElement", "quality", "properties", "items",
    "authoritativeDefinitions", "customProperties", "relationships",
)  # fmt: skip
QUALITY = (
    "id", "name", "description", "type", "rule", "metric", "arguments", "dimension", "severity", "unit",
    "method", "businessImpact", "schedule", "scheduler", "tags", "query", "engine", "implementation",
    "mustBe", "mustNotBe", "mustBeGreaterThan", "mustBeGreaterOrEqualTo", "mustBeLessThan",
    "mustBeLessOrEqualTo", "mustBeBetween", "mustNotBeBetween", "validValues",
    "authoritativeDefinitions", "customProperties",
)  # fmt: skip
SLA = (
    "id", "property", "value", "valueExt", "unit", "element", "driver", "description", "scheduler", "schedule",
)  # fmt: skip
CUSTOM = ("id", "property", "value", "description")

LOGICAL_TYPES = (
    "string", "date", "number", "integer", "object", "array", "boolean", "timestamp", "time",
)  # fmt: skip
# The logicalTypeOptions that limit no value: how one is read, and what is kept as it is written.
OTHER_OPTIONS: dict[str, tuple[str, ...]] = {
    "string": ("format",), "date": ("format",), "integer": ("format",), "number": ("format",),
    "timestamp": ("format", "timezone", "defaultTimezone"), "time": ("format", "timezone", "defaultTimezone"),
    "object": ("minProperties", "maxProperties", "required"), "array": (), "boolean": (),
}  # fmt: skip
LOGICAL_OPTIONS: dict[str, tuple[str, ...]] = {
    logical: (*(word for word, one in limits_by_word().items() if logical in one.of), *others)
    for logical, others in OTHER_OPTIONS.items()
}

# What the standard has no word for, as customProperties of the object and of a property.
OBJECT_CUSTOM = ("lode.eventTime", "lode.lateness", "lode.limit")
PROPERTY_CUSTOM = (
    "lode.source", "lode.aliases", "lode.masking", "lode.coerce", "lode.rounding", "lode.epoch", "lode.zone",
    "lode.anyCase", "lode.nonFinite",
)  # fmt: skip
ENGINE = "lodestream"
IMPLEMENTATION = ("expression", "action", "threshold")
ACTIONS = ("warn", "quarantine", "fail")

# The logical type of each Spark type, and the Spark type of a property that names none.
LOGICAL_OF = {
    "boolean": "boolean", "tinyint": "integer", "smallint": "integer", "int": "integer", "bigint": "integer",
    "float": "number", "double": "number", "decimal": "number", "string": "string", "binary": "string",
    "date": "date", "timestamp": "date", "timestamp_ntz": "date", "struct": "object", "map": "object",
    "array": "array", "variant": "object",
}  # fmt: skip
SPARK_OF = {
    "string": "string", "date": "date", "number": "double", "integer": "bigint", "boolean": "boolean",
    "timestamp": "timestamp", "time": "string", "object": "struct<>", "array": "array<string>",
}  # fmt: skip
