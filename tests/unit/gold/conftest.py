"""The generator of queries is shared with the Spark tier."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "gold_queries"))
