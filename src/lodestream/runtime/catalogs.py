"""The kinds of Iceberg catalog: what Spark and PyIceberg are told of each, and what the house asks about it.

A new kind is an entry here and a name in config/model.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from lodestream.config import CatalogType, Config, reveal
from lodestream.errors import ConfigError, RuntimeMissing

# How long a writer waits for another process that holds the SQLite file, instead of failing at once.
_BUSY_MILLIS = "30000"
# V1 is the layout that PyIceberg's SQL catalog reads and writes.
_SQL = {"type": "jdbc", "jdbc.schema-version": "V1"}


@dataclass(frozen=True, slots=True)
class CatalogKind:
    """`spark` gives the catalog's properties for Java, `python` is its type for PyIceberg, `file` the SQLite file that
    it is, if it is one. `settle` is how many seconds a driver waits before it trusts a lease that it wrote, `passing`
    how the names of Java's exceptions begin that mean: try again."""

    spark: Callable[[Config], dict[str, str]]
    python: Literal["sql", "rest"] = "sql"
    file: Callable[[Config], Path] | None = None
    settle: float = 0.0
    passing: tuple[str, ...] = ()


def catalog_kind(config: Config) -> CatalogKind:
    return _KINDS[config.catalog.type]


def passing_errors() -> tuple[str, ...]:
    """Of every kind: what is thrown says enough, whichever catalog it came from."""
    return tuple(dict.fromkeys(name for kind in _KINDS.values() for name in kind.passing))


def catalog_file(config: Config) -> Path | None:
    """The file that the whole catalog is; None where it is elsewhere. Nothing says that the file exists."""
    file = catalog_kind(config).file
    return file(config) if file else None


def python_settings(config: Config) -> dict[str, str]:
    """The catalog as PyIceberg's `load_catalog` takes it; the user's own catalog properties win."""
    address = {"type": catalog_kind(config).python, "uri": config.catalog_uri().removeprefix("jdbc:")}
    settings = {key: reveal(value) for key, value in config.catalog.properties.items()}
    return {**address, "warehouse": config.warehouse(), **settings}


def catalog_settings(config: Config) -> dict[str, str]:
    """Every `spark.sql.catalog.<name>` setting; the user's own catalog properties win."""
    prefix = f"spark.sql.catalog.{config.catalog.name}"
    properties = {
        "warehouse": config.warehouse(),
        # On by default, and can be stale: another process may have committed.
        "cache-enabled": "false",
        **catalog_kind(config).spark(config),
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


def _rest(config: Config) -> dict[str, str]:
    return {"type": "rest", "uri": config.catalog_uri()}


def _sqlite(config: Config) -> dict[str, str]:
    return {**_SQL, "uri": f"jdbc:sqlite:{sqlite_file(config)}", "jdbc.busy_timeout": _BUSY_MILLIS}


def _jdbc(config: Config) -> dict[str, str]:
    return {**_SQL, **_jdbc_address(config.catalog_uri())}


def _jdbc_address(uri: str) -> dict[str, str]:
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


_OF_JDBC = (
    "org.apache.iceberg.jdbc.UncheckedSQLException",
    "org.apache.iceberg.jdbc.UncheckedInterruptedException",
    "java.sql.SQL",
)
_KINDS: dict[CatalogType, CatalogKind] = {
    "sqlite": CatalogKind(_sqlite, file=sqlite_file, passing=(*_OF_JDBC, "org.sqlite.SQLiteException")),
    "jdbc": CatalogKind(_jdbc, passing=_OF_JDBC),
    # It checks snapshots and schemas of a change, not the properties it was based on: the last one wins.
    "rest": CatalogKind(_rest, python="rest", settle=1.0, passing=("org.apache.iceberg.exceptions.RESTException",)),
}
