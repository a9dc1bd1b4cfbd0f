"""`lode broker`, for people and for programs."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.timeout(180)


def test_start_find_look_and_stop(lode):
    started = lode("broker", "start", "--json").json
    try:
        assert started["started"] is True
        again = lode("broker", "start", "--json").json
        assert (again["started"], again["pid"]) == (False, started["pid"])
        assert started["bootstrap"] in lode("broker", "status").out
        assert "Kafka Server started" in lode("broker", "logs").out
        doctor = {check["name"]: check for check in lode("doctor", "--json").json["checks"]}
        assert started["bootstrap"] in doctor["broker"]["found"]
    finally:
        assert lode("broker", "stop", "--json").json == {"stopped": True}
    assert lode("broker", "status", "--json").json == {"running": False}
    assert lode("broker", "stop", "--json").json == {"stopped": False}
