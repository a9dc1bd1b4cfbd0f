"""All checks, in the order in which one that fails explains the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lodestream.config import Config
from lodestream.doctor.check import Check
from lodestream.doctor.machine import clock, disk, folders, java, memory, python
from lodestream.doctor.services import broker, catalog, ports
from lodestream.doctor.supplies import fetch_jars, jars
from lodestream.errors import LodeError
from lodestream.runtime.progress import Progress

_CHECKS: dict[str, Callable[[Config], Check]] = {
    "python": python,
    "java": java,
    "jars": jars,
    "memory": memory,
    "disk": disk,
    "folders": folders,
    "clock": clock,
    "ports": ports,
    "broker": broker,
    "catalog": catalog,
}


def examine(config: Config, progress: Progress, *, fetch: bool = False) -> Iterator[Check]:
    """Look at everything. With `fetch`, missing jars are fetched first."""
    for name, look in _CHECKS.items():
        if fetch and name == "jars":
            yield _guarded(name, lambda: fetch_jars(config, progress))
        else:
            with progress.step(f"Looking at {name}"):
                found = _guarded(name, lambda look=look: look(config))  # type: ignore[misc]
            yield found


def _guarded(name: str, look: Callable[[], Check]) -> Check:
    try:
        return look()
    except LodeError as error:
        return Check.failed(name, error)
    except OSError as error:
        return Check(name, "broken", str(error), "see that the path exists and this user may use it")
