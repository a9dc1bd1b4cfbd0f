"""Run, wake, size batches, supervise: the rooms wired together.

Names are imported when first used: `lode status` must not wait for Spark's modules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lodestream.engine.dead import dead_letters, discard_dead, replay_dead
    from lodestream.engine.run import RunEnd, run_pipeline
    from lodestream.engine.status import Status, TableStatus, read_status
    from lodestream.engine.verify import verify_tables

_HOMES = {
    "RunEnd": "run",
    "run_pipeline": "run",
    "Status": "status",
    "TableStatus": "status",
    "read_status": "status",
    "dead_letters": "dead",
    "discard_dead": "dead",
    "replay_dead": "dead",
    "verify_tables": "verify",
}

__all__ = [
    "RunEnd",
    "Status",
    "TableStatus",
    "dead_letters",
    "discard_dead",
    "read_status",
    "replay_dead",
    "run_pipeline",
    "verify_tables",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(name)
    return getattr(import_module(f"lodestream.engine.{_HOMES[name]}"), name)
