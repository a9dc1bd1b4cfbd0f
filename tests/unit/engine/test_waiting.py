"""How long a passing trouble is waited for, and what a person sees meanwhile."""

from __future__ import annotations

import pytest

from lodestream.cli.event_line import event_line
from lodestream.config import EngineConfig
from lodestream.engine.run import retry_limit
from lodestream.observe import DefinitionChanged, Event, FlowBlocked, FlowRetry


def test_a_command_that_a_person_waits_for_gives_up_sooner() -> None:
    given = EngineConfig()
    assert retry_limit(given, once=False) == 600
    assert retry_limit(given, once=True) == 60
    assert retry_limit(EngineConfig(retry_for=5.0), once=True) == 5


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (
            FlowRetry(
                "gold.a",
                error="BrokerUnavailable",
                what="Kafka does not answer",
                why=None,
                fix=None,
                tries=3,
                pause_s=0.71,
            ),
            "BrokerUnavailable: Kafka does not answer; attempt 3 failed, next try in 0.7 s",
        ),
        (
            FlowBlocked(
                "gold.a", error="ContractViolation", what="it refused 1 of 2 rows", why="region is not unique", fix=None
            ),
            "ContractViolation: it refused 1 of 2 rows (region is not unique)",
        ),
        (
            DefinitionChanged("gold.a", file="gold/a.sql", tables=("gold.a",), fix="restart `lode run` to apply it"),
            "gold/a.sql: restart `lode run` to apply it",
        ),
    ],
)
def test_an_event_says_what_goes_on_and_what_to_do(event: Event, said: str) -> None:
    line = event_line(event).plain
    assert line.endswith(f" {event.name} gold.a {said}")
