"""Every event is a type of its own: its name, its fields, how it is written, and how the documentation shows it."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from lodestream import observe
from lodestream.observe import Event, EventLog, EventName, event_types
from some_events import published, stopped

TYPES = event_types()
PAGE = Path(__file__).parents[3] / "docs" / "events.md"


def sample(hint: Any, *, smallest: bool) -> Any:
    if type(None) in get_args(hint):
        return None if smallest else sample(get_args(hint)[0], smallest=smallest)
    if get_origin(hint) is tuple:
        return () if smallest else (sample(get_args(hint)[0], smallest=smallest),)
    if get_origin(hint) is not None:
        return {} if smallest else {"key": sample(get_args(hint)[1], smallest=smallest)}
    values: Mapping[Any, Any] = {str: "text", int: 7, float: 1.5, bool: True, Any: ["x", None]}
    return values[hint]


def made(one: type[Event], *, smallest: bool = False) -> Event:
    hints = get_type_hints(one)
    return one("silver.a", **{name: sample(hints[name], smallest=smallest) for name in one.told()}, time=1.5, run="r")


def test_every_name_has_one_type() -> None:
    assert sorted(one.event_name for one in TYPES) == sorted(EventName)
    assert {one.__name__ for one in TYPES} <= set(observe.__all__)


@pytest.mark.parametrize("smallest", [False, True])
@pytest.mark.parametrize("one", TYPES, ids=lambda one: one.__name__)
def test_an_event_survives_the_log(one: type[Event], smallest: bool) -> None:
    event = made(one, smallest=smallest)
    raw = json.loads(json.dumps(event.to_json()))
    assert Event.from_json(raw) == event
    assert list(raw)[:4] == ["time", "run", "event", "table"]
    assert event.line().startswith(f"{event.name} flow=silver.a")


@pytest.mark.parametrize("one", TYPES, ids=lambda one: one.__name__)
def test_an_event_cannot_be_changed(one: type[Event]) -> None:
    assert not hasattr(made(one), "__dict__")
    with pytest.raises(dataclasses.FrozenInstanceError):
        made(one).table = "other"  # type: ignore[misc]


def test_the_lines_on_disk_have_the_words_they_always_had() -> None:
    """Alerts and scripts read them: a field that is there or not is a part of the format, too."""
    batch = published("bronze.a", 4, {"in": 1}, snapshot=5, bytes=6, ms={"total": 1.5}, positions={"k": {}})
    assert json.dumps(batch.to_json()) == (
        '{"time": 0.0, "run": "", "event": "batch.published", "table": "bronze.a", "batch": 4, "snapshot": 5, '
        '"rows": {"in": 1}, "bytes": 6, "ms": {"total": 1.5}, "positions": {"k": {}}, "caught_up": true}'
    )
    assert stopped("a", "w").to_json() == {
        **{"time": 0.0, "run": "", "event": "flow.stopped", "table": "a"},
        **{"error": "SourceUnreadable", "what": "w", "why": None, "fix": None},
    }, "a traceback that there is not is left out, a reason that nobody knows is null"


def test_alerts_are_logged_as_errors_and_show_no_rows(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = EventLog(tmp_path, "r")
    with caplog.at_level(logging.INFO, "lodestream.events"):
        for one in TYPES:
            log.emit(made(one))
    errors = {record.getMessage().split()[0] for record in caplog.records if record.levelno == logging.ERROR}
    assert errors == {"batch.refused", "flow.blocked", "flow.stopped", "sink.blocked", "verify.mismatch"}
    assert len(caplog.records) == len(TYPES)
    (mismatch,) = [one.getMessage() for one in caplog.records if "verify.mismatch" in one.getMessage()]
    assert "samples" not in mismatch


def test_the_documentation_shows_every_event_with_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PAGE.parent))
    import events_reference

    assert PAGE.read_text(encoding="utf-8") == events_reference.page(), "run ./dev docs"
    table = events_reference.table()
    assert all(f"| `{name}` |" in table for name in EventName)
    assert "`queued` list of text" in table
