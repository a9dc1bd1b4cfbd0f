"""A stream of New York taxi trips as it really looks: rhythm, refunds, wrong clocks, and dirt on request."""

from .counts import Counts
from .dirt import ALL_DIRT, Dirt
from .events import Batch, events, expected
from .pace import fixed_rate, real_time, stream
from .produce import DeliveryFailed, Sender, ensure_topic, open_sender
from .tlc import NotTripData, replay
from .wire import encoder

__all__ = [
    "ALL_DIRT",
    "Batch",
    "Counts",
    "DeliveryFailed",
    "Dirt",
    "NotTripData",
    "Sender",
    "encoder",
    "ensure_topic",
    "events",
    "expected",
    "fixed_rate",
    "open_sender",
    "real_time",
    "replay",
    "stream",
]
