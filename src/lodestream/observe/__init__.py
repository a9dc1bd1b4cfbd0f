"""What happens in a run: events as types, the log that keeps them, who listens, and reading them back."""

from lodestream.observe import events
from lodestream.observe.event import Event, OtherEvent, Severity, event_types
from lodestream.observe.events import *  # noqa: F403 - every type of an event is public
from lodestream.observe.log import EventLog, Listener, only
from lodestream.observe.reading import events_folder, last_events, read_events, run_starts

__all__ = [
    "Event",
    "EventLog",
    "Listener",
    "OtherEvent",
    "Severity",
    "event_types",
    "events_folder",
    "last_events",
    "only",
    "read_events",
    "run_starts",
]
__all__ += events.__all__
