"""What can be configured: one small dataclass per section, a line per option."""

# ruff: noqa: RUF009 (option() makes a dataclass field)

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from lodestream.config.duration import format_duration
from lodestream.config.secret import STARS, Secret

CatalogType = Literal["sqlite", "jdbc", "rest"]
# The catalogs that are elsewhere, each with an address such as it needs. runtime/catalogs.py knows what they are.
ADDRESSES: dict[str, str] = {"jdbc": "jdbc:postgresql://host/catalog", "rest": "https://host/catalog"}
Settings = Mapping[str, str | Secret]
Kind = Literal["text", "name", "choice", "integer", "duration", "memory", "settings"]


def option(
    default: Any,
    doc: str,
    kind: Kind = "text",
    *,
    choices: tuple[str, ...] = (),
    least: float = 0,
    shown: bool = True,
) -> Any:
    """A dataclass field that knows how to check, show and explain its value."""
    metadata = {"doc": doc, "kind": kind, "choices": choices, "least": least}
    if kind == "settings":
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata, repr=shown)


_REMOTE = " and ".join(f"`{one}`" for one in ADDRESSES)


@dataclass(frozen=True, slots=True)
class CatalogConfig:
    """Where the tables are registered and stored."""

    type: CatalogType = option("sqlite", "Kind of Iceberg catalog.", "choice", choices=get_args(CatalogType))
    name: str = option("lode", "Name of the catalog in Spark SQL.", "name")
    # Not in the repr: an address may carry credentials that came from the environment.
    uri: str | None = option(None, f"Address of the catalog; {_REMOTE} need one.", shown=False)
    warehouse: str | None = option(None, "Folder or `s3://` address that holds the tables.")
    properties: Settings = option(None, "Further Iceberg catalog properties, passed on.", "settings")


@dataclass(frozen=True, slots=True)
class KafkaConfig:
    """Where the events come from."""

    bootstrap: str = option("embedded", "`host:port,...`, or `embedded` for the project's own broker.")
    partitions: int = option(1, "Partitions of a topic that the embedded broker creates.", "integer", least=1)
    options: Settings = option(None, "Kafka client settings (TLS, SASL, time limits).", "settings")


@dataclass(frozen=True, slots=True)
class SparkConfig:
    """The Spark session."""

    master: str | None = option(None, "Spark master; without one, local and sized to the machine.")
    driver_memory: str | None = option(
        None,
        "Heap of the driver, such as `900m` or `2g`; by default a quarter of a machine, at most 768 MB, or an eighth "
        "of a larger one, at most 4 GB. See [throughput](throughput.md).",
        "memory",
    )
    conf: Settings = option(None, "Further Spark settings, passed on.", "settings")


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """How flows run."""

    target: float = option(1.0, "Time that one batch should take.", "duration", least=0.01)
    workers: int | None = option(
        None, "Flows that run side by side; by default what the machine allows.", "integer", least=1
    )
    max_batch_rows: int = option(
        500_000, "Most rows in one batch; of rows larger than 1 KB in their files fewer.", "integer", least=1
    )
    poll: float = option(0.1, "Pause between looks at an idle source.", "duration", least=0.01)
    retry_for: float = option(600.0, "How long a transient error is retried before the flow stops.", "duration")
    retry_once_for: float = option(60.0, "The same with `--once`, for which a person waits.", "duration")
    retry_wait: float = option(15.0, "Longest pause between two retries.", "duration", least=0.01)


@dataclass(frozen=True, slots=True)
class RuntimeConfig:
    """Java and the jars."""

    java_home: str | None = option(None, "Java 17 or 21 to use instead of the one found.")
    maven: str | None = option(None, "Address or folder of the Maven repository that serves the jars.")
    cache: str | None = option(None, "Folder for downloaded jars, shared between projects.")


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one project under one profile, and where each came from."""

    root: Path
    profile: str = "local"
    pipeline: str = "pipeline.py"
    file: Path | None = None
    catalog: CatalogConfig = field(default_factory=CatalogConfig)
    kafka: KafkaConfig = field(default_factory=KafkaConfig)
    spark: SparkConfig = field(default_factory=SparkConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)
    origins: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    hidden: frozenset[str] = field(default_factory=frozenset, repr=False, compare=False)

    @property
    def state_dir(self) -> Path:
        return self.root / ".lode"

    def catalog_uri(self) -> str:
        return self.catalog.uri or f"sqlite:///{self.state_dir / 'catalog.db'}"

    def warehouse(self) -> str:
        """An address as given; a folder as an absolute path, which both Spark and PyIceberg read."""
        given = self.catalog.warehouse
        if given is None:
            return str(self.state_dir / "warehouse")
        return given if ":/" in given else str(self.root / Path(given).expanduser())

    def describe(self) -> list[tuple[str, str, str]]:
        """Each key, its value as it may be shown, and where the value came from."""
        rows = [(key, getattr(self, key)) for key in ("profile", "pipeline")]
        rows += [
            (f"{name}.{one.name}", getattr(getattr(self, name), one.name))
            for name, section in SECTIONS.items()
            for one in fields(section)
        ]
        return [
            (key, self._shown(key, value), self.origins.get(key, "default"))
            for flat, setting in rows
            for key, value in _spread(flat, setting)
        ]

    def _shown(self, key: str, value: object) -> str:
        if key in self.hidden:
            return STARS
        return format_duration(value) if isinstance(value, float) else "" if value is None else str(value)


SECTIONS: dict[str, type] = {
    "catalog": CatalogConfig,
    "kafka": KafkaConfig,
    "spark": SparkConfig,
    "engine": EngineConfig,
    "runtime": RuntimeConfig,
}


def _spread(key: str, value: object) -> list[tuple[str, object]]:
    if isinstance(value, Mapping):
        return [(f"{key}.{name}", value[name]) for name in sorted(value)]
    return [(key, value)]
