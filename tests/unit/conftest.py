from __future__ import annotations

import sys
from pathlib import Path

# What several tiers share lies above them.
sys.path.insert(0, str(Path(__file__).parents[1]))
