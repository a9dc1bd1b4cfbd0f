from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# The judge beside these tests is a module of theirs alone.
sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("protocol_oracle")

from protocol_oracle import Project, create_topic  # noqa: E402

if TYPE_CHECKING:
    from lodestream.runtime.broker import BrokerInfo

_numbers = itertools.count(1)


@pytest.fixture
def make_project(broker: BrokerInfo, tmp_path: Path) -> Iterator[Callable[..., Project]]:
    """Projects on the shared broker, each with a topic of its own; their drivers end with the test."""
    made: list[Project] = []

    def make(*, partitions: int = 3, busy_millis: int = 30_000) -> Project:
        topic = f"chaos.events{next(_numbers)}"
        create_topic(broker.bootstrap, topic, partitions)
        made.append(Project(tmp_path / topic, broker.bootstrap, topic, busy_millis=busy_millis))
        return made[-1]

    yield make
    for project in made:
        project.stop_all()
