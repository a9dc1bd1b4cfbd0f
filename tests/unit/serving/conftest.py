from __future__ import annotations

import sys
from pathlib import Path

import pytest

# The tables beside these tests are a module of theirs alone.
sys.path.insert(0, str(Path(__file__).parent))

from served import Served


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served(tmp_path)
