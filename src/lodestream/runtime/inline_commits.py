"""Iceberg's small parallel steps, done at once in the thread that asks.

A commit hands each of its steps (write one manifest, filter one list, delete one old metadata file) to a pool and looks
every 10 ms whether it is done: five naps for a batch of a thousand rows, a third of its time. Nothing can be told to
the pools from outside, so they are replaced, by ones that run a step in the caller's thread. With local files a step
takes less time than the nap; over a network steps are better done in parallel, and nothing is changed.
"""

from __future__ import annotations

import logging
from typing import Any

from py4j.protocol import Py4JError

_log = logging.getLogger(__name__)
_POOLS = (
    ("org.apache.iceberg.util.ThreadPools", "WORKER_POOL"),
    ("org.apache.iceberg.hadoop.HadoopFileIO", "executorService"),
)


def commit_inline(jvm: Any) -> bool:
    """Replace the pools before they are first used; whether that worked. A JVM that forbids it is only slower."""
    try:
        unsafe = _unsafe(jvm)
        direct = jvm.org.apache.iceberg.relocated.com.google.common.util.concurrent.MoreExecutors
        for name, field in _POOLS:
            pool = jvm.java.lang.Class.forName(name).getDeclaredField(field)
            at = (unsafe.staticFieldBase(pool), unsafe.staticFieldOffset(pool))
            unsafe.putObject(*at, direct.newDirectExecutorService())
    except Py4JError as error:
        _log.warning("iceberg.pools kept, commits take longer: %s", str(error).splitlines()[0])
        return False
    return True


def _unsafe(jvm: Any) -> Any:
    """The fields are private and one is final, which reflection respects and this does not."""
    key = jvm.java.lang.Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe")
    key.setAccessible(True)
    return key.get(None)
