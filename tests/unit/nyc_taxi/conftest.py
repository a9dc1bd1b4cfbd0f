"""The example is a plain folder: its generator is importable once that folder is on the path."""

from __future__ import annotations

import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "nyc_taxi"
if str(EXAMPLE) not in sys.path:
    sys.path.insert(0, str(EXAMPLE))
