"""A batch that takes long is told while it is under way, ever less often, with what waits behind it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from lodestream.engine import long_batches
from lodestream.engine.long_batches import LongBatches
from lodestream.observe import Event, EventLog


def test_a_long_batch_is_told_ever_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(long_batches.time, "monotonic", lambda: clock.now)
    slow = SimpleNamespace(name="silver.scans", working_since=0.0, shown_state="running")
    others = [SimpleNamespace(name=name, working_since=None, shown_state=state) for name, state in
              (("bronze.raw", "waiting"), ("gold.daily", "queued"))]  # fmt: skip
    heard: list[Event] = []
    events = EventLog(tmp_path, "run", heard.append)
    watch = LongBatches([slow, *others], events)  # type: ignore[list-item]
    for second in range(100):
        clock.now = float(second)
        watch.look()
    assert [one.facts()["seconds"] for one in heard] == [10.0, 20.0, 40.0, 80.0]
    assert all(list(one.facts()["queued"]) == ["gold.daily"] for one in heard)
    slow.working_since = None
    watch.look()
    slow.working_since = 95.0
    clock.now = 105.0
    watch.look()
    assert [one.facts()["seconds"] for one in heard][4:] == [10.0], "the next batch is another one"
    assert {one.name for one in heard} == {"batch.long"}
    events.close()
