"""Whether this machine and this project have what a run needs, and the fix for what is missing."""

from lodestream.doctor.check import Check
from lodestream.doctor.examine import examine

__all__ = ["Check", "examine"]
