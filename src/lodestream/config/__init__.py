"""Configuration: lode.toml with profiles, environment variables, arguments."""

from lodestream.config.duration import format_duration, parse_duration
from lodestream.config.kafka_options import KAFKA_OPTIONS
from lodestream.config.load import find_file, load_config
from lodestream.config.model import (
    CatalogConfig,
    CatalogType,
    Config,
    EngineConfig,
    KafkaConfig,
    RuntimeConfig,
    SparkConfig,
)
from lodestream.config.schema import nearest
from lodestream.config.secret import Secret, reveal, sounds_secret

__all__ = [
    "KAFKA_OPTIONS",
    "CatalogConfig",
    "CatalogType",
    "Config",
    "EngineConfig",
    "KafkaConfig",
    "RuntimeConfig",
    "Secret",
    "SparkConfig",
    "find_file",
    "format_duration",
    "load_config",
    "nearest",
    "parse_duration",
    "reveal",
    "sounds_secret",
]
