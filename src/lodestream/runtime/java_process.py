"""Whether the Java process that runs Spark still lives, and if not, how it ended."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext

from lodestream.errors import JavaEnded

# Java's own code for `ExitOnOutOfMemoryError`, and Spark's for a task that ran out of heap.
_NO_HEAP = (3, 52)
# Seconds that a process takes to end after its connections have broken.
_DYING = 10.0
_AGAIN = (
    f"`lode run` again, or let a supervisor do it on exit code {JavaEnded.exit_code}: it goes on where the tables are"
)


def java_ended(error: BaseException | None = None) -> JavaEnded | None:
    """The error for a Java process that is gone; None while it lives, and when another program has started it.

    With an `error` that a broken connection may have caused, the process is given the time to end.
    """
    process = getattr(SparkContext._gateway, "proc", None)
    if not isinstance(process, subprocess.Popen):
        return None
    code = process.poll()
    if code is None and _broke(error):
        try:
            code = process.wait(_DYING)
        except subprocess.TimeoutExpired:
            return None
    return None if code is None else how_it_ended(code)


@contextmanager
def while_java_lives() -> Iterator[None]:
    """Whatever goes wrong inside because the Java process is gone is raised as that: `JavaEnded`."""
    try:
        yield
    except Exception as error:
        ended = java_ended(error)
        if ended is None or isinstance(error, JavaEnded):
            raise
        raise ended from error


def how_it_ended(code: int) -> JavaEnded:
    """In the words of an operator. A code below zero, or above 128 from a shell, is a signal."""
    number = -code if code < 0 else code - 128
    if code in _NO_HEAP:
        return JavaEnded(
            "the Java process that runs Spark ran out of heap and ended",
            why=f"exit code {code}; spark.log in the project's state folder has its last words",
            fix=f"raise spark.driver_memory or lower engine.max_batch_rows; {_AGAIN}",
        )
    if 0 < number < 65:
        return JavaEnded(
            f"the Java process that runs Spark was killed ({_name(number)})",
            why="the machine ran out of memory and its kernel chose this process, or somebody ended it",
            fix=f"lower spark.driver_memory or give the machine more; {_AGAIN}",
        )
    return JavaEnded(
        f"the Java process that runs Spark ended with code {code}",
        why="spark.log in the project's state folder has its last words",
        fix=_AGAIN,
    )


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _broke(error: BaseException | None) -> bool:
    """Whether a connection that broke is among the causes."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, Py4JNetworkError | ConnectionError):
            return True
        error = error.__cause__ or error.__context__
    return False
