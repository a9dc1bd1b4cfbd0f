from __future__ import annotations

import sys
from pathlib import Path

import pytest

# The line of tables beside these tests is a module of theirs alone.
sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("protocol_line")
