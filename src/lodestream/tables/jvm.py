"""What went wrong inside the JVM, as one of our errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from lodestream.errors import CatalogUnavailable, ClockBehind, LodeError, OutcomeUnknown
from lodestream.runtime.catalogs import passing_errors

_TRANSIENT = (
    "org.apache.iceberg.exceptions.CommitFailedException",
    "org.apache.iceberg.exceptions.ServiceFailureException",
    "org.apache.iceberg.exceptions.ServiceUnavailableException",
    "org.apache.iceberg.exceptions.RuntimeIOException",
    "java.net.ConnectException",
    "java.net.SocketException",
    "java.net.SocketTimeoutException",
    "org.apache.hc.core5",
    *passing_errors(),
)
_UNKNOWN = ("org.apache.iceberg.exceptions.CommitStateUnknownException",)
# What Iceberg says when maintenance replaced files that a change of rows builds on: made again, it fits.
_OVERTAKEN = re.compile(r"(Found (new )?conflicting|Cannot commit, (found|missing)|Missing required files to delete)\b")
# Iceberg keeps the moves of `main` in order of time, give or take a minute.
_CLOCK = ("Invalid update timestamp", "Invalid snapshot timestamp", "Expected sorted snapshot log entries")


def causes(error: Exception) -> list[tuple[str, str]]:
    """The chain of Java causes as (class name, message), outermost first."""
    chain: list[tuple[str, str]] = []
    current: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while current is not None and len(chain) < 12:
        chain.append((str(current.getClass().getName()), str(current.getMessage())))
        current = current.getCause()
    return chain


def members(collection: Any) -> list[Any]:
    """What a Java collection holds.

    A Python loop over it would end with Java's exception, which PySpark holds against a dozen classes: 14 ms.
    """
    found = collection.toArray()
    return [found[index] for index in range(len(found))]


def static(spark: SparkSession, java_class: Any, method: str) -> Any:
    """Call a static method that takes nothing.

    Where a class has a method of its objects by the same name, Py4J takes the one Java lists first, and Java lists
    them in another order in another process: `java_class.method()` then fails, now and then.
    """
    jvm, array = spark._jvm, spark.sparkContext._gateway.new_array  # type: ignore[union-attr]
    found = java_class._java_lang_class.getMethod(method, array(jvm.java.lang.Class, 0))  # type: ignore[union-attr]
    return found.invoke(None, array(jvm.java.lang.Object, 0))  # type: ignore[union-attr]


def says_no_such_table(error: Exception) -> bool:
    """Iceberg's own exception of that name, or Spark's."""
    return any(name.endswith(".NoSuchTableException") for name, _ in causes(error))


def translate(error: Exception, doing: str) -> LodeError | None:
    """Our error for a catalog's failure, or None when it is something else (a user's query, a bug)."""
    if isinstance(error, Py4JNetworkError):
        return CatalogUnavailable(f"{doing}: the JVM is gone", why=str(error))
    for name, message in causes(error):
        if any(said in message for said in _CLOCK):
            return _clock_behind(doing, message)
        if name.startswith(_UNKNOWN):
            return OutcomeUnknown(f"{doing}: the answer was lost", why=message)
        if name.endswith(".ValidationException") and _OVERTAKEN.match(message):
            return CatalogUnavailable(f"{doing}: the table was changed meanwhile", why=message)
        if name.startswith(_TRANSIENT):
            return CatalogUnavailable(f"{doing}: the catalog did not answer", why=f"{name}: {message}")
    return None


def _clock_behind(doing: str, message: str) -> ClockBehind:
    return ClockBehind(
        f"{doing}: this machine's clock is behind the table's last commit",
        why=message,
        fix="set the clock; once it has passed the last commit the flow goes on by itself",
    )


@contextmanager
def catalog_errors(doing: str) -> Iterator[None]:
    """Raise our errors for the catalog's; let everything else through."""
    try:
        yield
    except LodeError:
        raise
    except Exception as error:
        known = translate(error, doing)
        if known is None:
            raise
        raise known from error
