from __future__ import annotations

import sys
from pathlib import Path

import pytest

# What the tests of several rooms share.
sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("counted")
