from __future__ import annotations

import sys
from pathlib import Path

# The oracle beside these tests is a module of theirs alone.
sys.path.insert(0, str(Path(__file__).parent))
