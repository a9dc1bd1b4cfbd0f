"""The configured Iceberg catalog as Spark settings."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from lodestream.config import Config, reveal
from lodestream.errors import ConfigError, RuntimeMissing

# How long a writer waits for another process that holds the SQLite file, instead of failing at once.
_BUSY_MILLIS = "30000"


def catalog_settings(config: Config) -> dict[str, str]:
    """Every `spark.sql.catalog.<name>` setting; the user's own catalog properties win."""
    prefix = f"spark.sql.catalog.{config.catalog.name}"
    properties = {
        "warehouse": config.warehouse(),
        # On by default, and can be stale: another process may have committed.
        "cache-enabled": "false",
        **_kind(config),
        **{key: reveal(value) for key, value in config.catalog.properties.items()},
    }
    if needs_s3(config):
        properties.setdefault("io-impl", "org.apache.iceberg.aws.s3.S3FileIO")
    settings = {f"{prefix}.{key}": value for key, value in properties.items()}
    return {prefix: "org.apache.iceberg.spark.SparkCatalog", **settings}


def needs_s3(config: Config) -> bool:
    """Whether the tables, or the way to them, are on S3-compatible storage."""
    scheme = urlsplit(config.warehouse()).scheme
    return scheme in ("s3", "s3a", "s3n") or any(key.startswith("s3.") for key in config.catalog.properties)


def has_local_files(config: Config) -> bool:
    """Whether the tables are files of this machine, so that no step of a commit goes over a network."""
    return urlsplit(config.warehouse()).scheme in ("", "file") and not needs_s3(config)


def sqlite_file(config: Config) -> Path:
    """The file behind a catalog of type sqlite; its URI is SQLAlchemy's, so that PyIceberg reads it too."""
    uri = config.catalog_uri()
    if not uri.startswith("sqlite:///"):
        raise ConfigError(
            f"catalog.uri = {uri!r} is not a SQLite address",
            why="catalog.type is sqlite",
            fix="write it as sqlite:///path/to/catalog.db, or change catalog.type",
        )
    return config.root.absolute() / Path(uri.removeprefix("sqlite:///"))


def refuse_lost_catalog(config: Config) -> None:
    """SQLite makes a file that is missing: every table would begin anew, beside the files of the real one."""
    file, warehouse = sqlite_file(config), Path(config.warehouse())
    if file.exists() or not any(warehouse.glob("*/*/metadata/*.metadata.json")):
        return
    raise RuntimeMissing(
        f"the catalog {file} is missing",
        why=f"{warehouse} holds tables, and without their catalog nothing says which of their files are current",
        fix="put the file back; to begin anew, move the warehouse away as well",
    )


def _kind(config: Config) -> dict[str, str]:
    if config.catalog.type == "rest":
        return {"type": "rest", "uri": config.catalog_uri()}
    # V1 is the layout that PyIceberg's SQL catalog reads and writes.
    common = {"type": "jdbc", "jdbc.schema-version": "V1"}
    if config.catalog.type == "jdbc":
        return {**common, **_jdbc(config.catalog_uri())}
    return {**common, "uri": f"jdbc:sqlite:{sqlite_file(config)}", "jdbc.busy_timeout": _BUSY_MILLIS}


def _jdbc(uri: str) -> dict[str, str]:
    """A JDBC address as it is; SQLAlchemy's form, which PyIceberg needs, is translated."""
    if uri.startswith("jdbc:"):
        return {"uri": uri}
    parts = urlsplit(uri)
    driver = parts.scheme.partition("+")[0]
    if driver not in ("postgresql", "postgres") or not parts.hostname:
        raise ConfigError(
            f"catalog.uri with scheme {parts.scheme!r} is not understood",
            why="catalog.type is jdbc",
            fix="write it as jdbc:postgresql://host:5432/database or postgresql://user@host:5432/database",
        )
    port = f":{parts.port}" if parts.port else ""
    found = {"uri": f"jdbc:postgresql://{parts.hostname}{port}{parts.path}{'?' if parts.query else ''}{parts.query}"}
    if parts.username:
        found["jdbc.user"] = unquote(parts.username)
    if parts.password:
        found["jdbc.password"] = unquote(parts.password)
    return found
