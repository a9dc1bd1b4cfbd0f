"""A stream of New York taxi trips as it really looks: rhythm, refunds, wrong clocks, and dirt on request."""

from .counts import Counts
from .dirt import ALL_DIRT, Dirt
from .events import Batch, events, expected

__all__ = ["ALL_DIRT", "Batch", "Counts", "Dirt", "events", "expected"]
