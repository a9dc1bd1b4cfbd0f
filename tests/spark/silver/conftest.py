from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# The line of tables beside these tests is a module of theirs alone.
sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("silver_line")


@pytest.fixture
def line(lake: Any) -> Iterator[Callable[[Any], Any]]:
    """Makes the tables of a declared pipeline, whose `bronze.events` holds what the test sends."""
    from silver_line import SilverLine

    from lodestream import failpoints

    yield lambda pipeline: SilverLine(lake.config, lake.spark, pipeline)
    failpoints.disarm()
