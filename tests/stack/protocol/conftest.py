from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# The judge of the chaos tests is the judge here, too.
sys.path.insert(0, str(Path(__file__).parents[2] / "chaos"))
pytest.register_assert_rewrite("protocol_oracle")

from protocol_oracle import Project, create_topic  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lodestream.runtime.broker import BrokerInfo

_numbers = itertools.count(1)


@pytest.fixture
def make_project(spark: SparkSession, broker: BrokerInfo, tmp_path: Path) -> Callable[..., Project]:
    """Projects on the shared broker and the shared Spark, each with a topic of its own."""

    def make(*, partitions: int = 3, **topic_config: str) -> Project:
        topic = f"stack.events{next(_numbers)}"
        create_topic(broker.bootstrap, topic, partitions, **topic_config)
        return Project(tmp_path / topic, broker.bootstrap, topic)

    return make
