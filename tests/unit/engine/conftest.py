from __future__ import annotations

import sys
from pathlib import Path

# The scripted flows of one module serve its neighbours.
sys.path.insert(0, str(Path(__file__).parent))
