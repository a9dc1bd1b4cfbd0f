from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# The PostgreSQL and the Debezium beside these tests.
sys.path.insert(0, str(Path(__file__).parent))

from postgres import Postgres


@pytest.fixture(scope="session")
def database() -> Iterator[Postgres]:
    running = Postgres()
    yield running
    running.remove()
