"""Events for tests that are not about their fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lodestream.observe import BatchPublished, BatchRefused, FlowBlocked, FlowRetry, FlowStopped, RunStarted


def started(*tables: str, pid: int | None = None) -> RunStarted:
    return RunStarted(pipeline="taxi", tables=tables, once=False, pid=pid)


def published(table: str, batch: int = 1, rows: Mapping[str, int] | None = None, **given: Any) -> BatchPublished:
    facts = {"snapshot": 1, "bytes": 1, "ms": {"total": 1.0}, "positions": {}, "caught_up": True, **given}
    return BatchPublished(table, batch=batch, rows=rows or {"in": 1, "out": 1}, **facts)


def refused(table: str, what: str) -> BatchRefused:
    return BatchRefused(table, error="AnotherWriter", what=what, why=None)


def blocked(table: str, what: str) -> FlowBlocked:
    return FlowBlocked(table, error="SourceUnreadable", what=what, why=None, fix=None)


def retry(table: str, what: str) -> FlowRetry:
    return FlowRetry(table, error="BrokerUnavailable", what=what, why=None, fix=None, tries=1, pause_s=0.2)


def stopped(table: str, what: str, **given: Any) -> FlowStopped:
    return FlowStopped(table, **{"error": "SourceUnreadable", "what": what, "why": None, "fix": None, **given})
