from __future__ import annotations

import sys
from pathlib import Path

import pytest

# The oracle is shared with the tests that need no JVM; the line of tables is a module of these tests alone.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "unit" / "feeds")]
pytest.register_assert_rewrite("feed_line")
