"""Every event that a run or a command can tell of: an enum of their names, and a type with its fields for each.

A new event is a member of `EventName`, a type and a line of `__all__`, all in this file; `./dev docs` puts it into the
table of docs/events.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from lodestream.observe.event import Event, Severity, event_type

__all__ = [
    "BatchLong",
    "BatchPublished",
    "BatchRefused",
    "ColumnUnfilled",
    "ContractUnreadable",
    "DeadDiscarded",
    "DeadReplayed",
    "DefinitionChanged",
    "DefinitionRestored",
    "EventName",
    "FieldUnknown",
    "FlowBlocked",
    "FlowEnded",
    "FlowPaused",
    "FlowRestarted",
    "FlowResumed",
    "FlowRetry",
    "FlowStopped",
    "GapAccepted",
    "LeaseMissing",
    "PlanRefused",
    "PlanUntried",
    "Rebuilt",
    "RunEnded",
    "RunStarted",
    "SchemaChange",
    "SinkBlocked",
    "SinkRefreshed",
    "SinkResumed",
    "SinkRetry",
    "TableAdopted",
    "Trouble",
    "VerifyEqual",
    "VerifyFailed",
    "VerifyMismatch",
    "VerifyPostponed",
    "VerifyRebuilt",
    "VerifySkipped",
]


class EventName(StrEnum):
    """The names as they stand in logs, in `lode events --name` and in alerts: none is ever changed."""

    RUN_STARTED = "run.started"
    RUN_ENDED = "run.ended"
    LEASE_MISSING = "lease.missing"
    BATCH_PUBLISHED = "batch.published"
    BATCH_LONG = "batch.long"
    BATCH_REFUSED = "batch.refused"
    FLOW_RETRY = "flow.retry"
    FLOW_BLOCKED = "flow.blocked"
    FLOW_STOPPED = "flow.stopped"
    FLOW_PAUSED = "flow.paused"
    FLOW_RESUMED = "flow.resumed"
    FLOW_RESTARTED = "flow.restarted"
    FLOW_ENDED = "flow.ended"
    GAP_ACCEPTED = "gap.accepted"
    TABLE_ADOPTED = "table.adopted"
    DEFINITION_CHANGED = "definition.changed"
    DEFINITION_RESTORED = "definition.restored"
    SCHEMA_CHANGE = "schema-change"
    CONTRACT_UNREADABLE = "contract.unreadable"
    COLUMN_UNFILLED = "column.unfilled"
    FIELD_UNKNOWN = "field.unknown"
    REBUILT = "rebuilt"
    PLAN_REFUSED = "plan-refused"
    PLAN_UNTRIED = "plan-untried"
    DEAD_REPLAYED = "dead.replayed"
    DEAD_DISCARDED = "dead.discarded"
    SINK_RETRY = "sink.retry"
    SINK_BLOCKED = "sink.blocked"
    SINK_RESUMED = "sink.resumed"
    SINK_REFRESHED = "sink.refreshed"
    VERIFY_EQUAL = "verify.equal"
    VERIFY_MISMATCH = "verify.mismatch"
    VERIFY_REBUILT = "verify.rebuilt"
    VERIFY_SKIPPED = "verify.skipped"
    VERIFY_POSTPONED = "verify.postponed"
    VERIFY_FAILED = "verify.failed"


@event_type
class RunStarted(Event):
    """A run begins; the first event of its log."""

    event_name = EventName.RUN_STARTED

    pipeline: str | None = None
    tables: tuple[str, ...]
    once: bool
    pid: int | None = None


@event_type
class RunEnded(Event):
    """A run ended by itself or was asked to; one that was killed has no such event."""

    event_name = EventName.RUN_ENDED

    reason: str
    exit_code: int


@event_type
class LeaseMissing(Event):
    """The catalog did not give the run its lease: it goes on, and tries again."""

    event_name = EventName.LEASE_MISSING
    severity = Severity.WARNING

    error: str
    what: str


@event_type
class BatchPublished(Event):
    """A batch is in its table, with the positions that it was read to."""

    event_name = EventName.BATCH_PUBLISHED
    severity = Severity.GOOD
    frequent = True
    flow_state = ""

    batch: int
    snapshot: int
    rows: Mapping[str, int]
    bytes: int
    ms: Mapping[str, float]
    positions: Mapping[str, Any]
    caught_up: bool


@event_type
class BatchLong(Event):
    """A batch is still under way; told after 10 s, and again each time that it has taken twice as long."""

    event_name = EventName.BATCH_LONG

    seconds: float
    queued: tuple[str, ...]


@event_type
class BatchRefused(Event):
    """Another run keeps the table: nothing of ours was published."""

    event_name = EventName.BATCH_REFUSED
    severity = Severity.ALERT
    flow_state = "stopped"

    error: str
    what: str
    why: str | None
    fix: str | None = None
    traceback: str | None = None


@event_type
class FlowRetry(Event):
    """A trouble that may pass; the flow tries again."""

    event_name = EventName.FLOW_RETRY
    severity = Severity.WARNING
    flow_state = "retrying"

    error: str
    what: str
    why: str | None
    fix: str | None
    tries: int
    most_tries: int | None = None
    give_up_s: float | None = None
    pause_s: float


@event_type
class FlowBlocked(Event):
    """Something outside must be put right; the flow goes on by itself once it is."""

    event_name = EventName.FLOW_BLOCKED
    severity = Severity.ALERT
    flow_state = "blocked"

    error: str
    what: str
    why: str | None
    fix: str | None
    traceback: str | None = None


@event_type
class FlowStopped(Event):
    """Something that a person must decide; the flow makes no further batch."""

    event_name = EventName.FLOW_STOPPED
    severity = Severity.ALERT
    flow_state = "stopped"

    error: str
    what: str
    why: str | None
    fix: str | None
    traceback: str | None = None


@event_type
class FlowPaused(Event):
    """A person asked the flow to pause."""

    event_name = EventName.FLOW_PAUSED
    severity = Severity.WARNING
    flow_state = "paused"


@event_type
class FlowResumed(Event):
    """The flow goes on."""

    event_name = EventName.FLOW_RESUMED
    flow_state = ""

    reason: str


@event_type
class FlowRestarted(Event):
    """The flow began anew, as a new run would."""

    event_name = EventName.FLOW_RESTARTED
    flow_state = ""


@event_type
class FlowEnded(Event):
    """The flow has nothing more to do in this run."""

    event_name = EventName.FLOW_ENDED
    flow_state = ""

    reason: str
    batches: int
    rows: int


@event_type
class GapAccepted(Event):
    """A person accepted that the source has lost records; the table says so as well."""

    event_name = EventName.GAP_ACCEPTED
    severity = Severity.WARNING

    error: str
    what: str
    why: str | None


@event_type
class TableAdopted(Event):
    """A person gave a table with rows of another's to this pipeline."""

    event_name = EventName.TABLE_ADOPTED

    what: str


@event_type
class DefinitionChanged(Event):
    """A file was edited that a run reads only when it begins."""

    event_name = EventName.DEFINITION_CHANGED
    severity = Severity.WARNING

    file: str
    tables: tuple[str, ...]
    fix: str | None


@event_type
class DefinitionRestored(Event):
    """An edited file is again as the run knows it."""

    event_name = EventName.DEFINITION_RESTORED

    file: str
    tables: tuple[str, ...]
    fix: str | None


@event_type
class SchemaChange(Event):
    """A contract was edited and applied: `steps` changed the table, `changes` only what is promised."""

    event_name = EventName.SCHEMA_CHANGE

    contract: str
    steps: tuple[str, ...]
    changes: tuple[str, ...]


@event_type
class ContractUnreadable(Event):
    """An edited contract cannot be read; the one before goes on."""

    event_name = EventName.CONTRACT_UNREADABLE
    severity = Severity.WARNING

    what: str
    why: str | None


@event_type
class ColumnUnfilled(Event):
    """Columns of the contract that the function does not return: they are null in every row."""

    event_name = EventName.COLUMN_UNFILLED
    severity = Severity.WARNING

    columns: tuple[str, ...]
    contract: str


@event_type
class FieldUnknown(Event):
    """Fields came that the contract does not name; told once of each in a run."""

    event_name = EventName.FIELD_UNKNOWN

    fields: tuple[str, ...]
    rows: int


@event_type
class Rebuilt(Event):
    """A Gold table was computed anew, since what follows its changes met a value that it refuses."""

    event_name = EventName.REBUILT

    why: str


@event_type
class PlanRefused(Event):
    """Spark computed something else by the plan than by the query: the table is kept by full refresh."""

    event_name = EventName.PLAN_REFUSED

    strategy: str
    why: str


@event_type
class PlanUntried(Event):
    """Spark could not compare a declared plan with the query; it is used as declared."""

    event_name = EventName.PLAN_UNTRIED

    strategy: str
    why: str


@event_type
class DeadReplayed(Event):
    """Dead letters were judged again: `letters` entered the table, `failing` did not."""

    event_name = EventName.DEAD_REPLAYED

    letters: int
    failing: int
    rows: Mapping[str, int]
    batches: tuple[int, ...]


@event_type
class DeadDiscarded(Event):
    """Dead letters were marked as not worth a replay."""

    event_name = EventName.DEAD_DISCARDED

    letters: int
    note: str | None


@event_type
class SinkRetry(Event):
    """A sink did not take what it was given; it is given it again."""

    event_name = EventName.SINK_RETRY
    severity = Severity.WARNING

    sink: str
    error: str
    what: str
    why: str | None
    fix: str | None
    tries: int
    give_up_s: float | None = None
    pause_s: float


@event_type
class SinkBlocked(Event):
    """A sink has not taken what it was given for long, or never will as it is; a try follows every minute."""

    event_name = EventName.SINK_BLOCKED
    severity = Severity.ALERT

    sink: str
    error: str
    what: str
    why: str | None
    fix: str | None


@event_type
class SinkResumed(Event):
    """A sink takes what it is given again."""

    event_name = EventName.SINK_RESUMED

    sink: str
    reason: str


@event_type
class SinkRefreshed(Event):
    """A sink was given the whole table, since changes that it lacked are gone."""

    event_name = EventName.SINK_REFRESHED
    severity = Severity.WARNING

    sink: str
    reason: str


@event_type
class VerifyEqual(Event):
    """A Gold table equals its query; `sampled` is how many keys were compared instead of all."""

    event_name = EventName.VERIFY_EQUAL
    severity = Severity.GOOD

    rows: int
    ms: float
    snapshot: int | None
    sampled: int | None


@event_type
class VerifyMismatch(Event):
    """A Gold table differs from its query; `rebuild` says whether it is rebuilt now."""

    event_name = EventName.VERIFY_MISMATCH
    severity = Severity.ALERT
    unlogged = ("columns", "samples")

    ms: float
    snapshot: int | None
    sampled: int | None
    added: int
    missing: int
    changed: int
    state_added: int | None = None
    state_missing: int | None = None
    state_changed: int | None = None
    columns: Mapping[str, int]
    samples: tuple[Mapping[str, Any], ...]
    reason: str | None
    rebuild: bool


@event_type
class VerifyRebuilt(Event):
    """A Gold table that differed was rebuilt."""

    event_name = EventName.VERIFY_REBUILT
    severity = Severity.WARNING

    snapshot: int
    rows: int


@event_type
class VerifySkipped(Event):
    """A Gold table could not be compared, and why."""

    event_name = EventName.VERIFY_SKIPPED

    status: str
    reason: str | None


@event_type
class VerifyPostponed(Event):
    """A verification is overdue, since the driver is never idle; told once an interval."""

    event_name = EventName.VERIFY_POSTPONED

    intervals: int
    reason: str


@event_type
class VerifyFailed(Event):
    """A verification ended in an error."""

    event_name = EventName.VERIFY_FAILED

    error: str
    what: str


Trouble = (
    BatchRefused
    | FlowBlocked
    | FlowRetry
    | FlowStopped
    | GapAccepted
    | LeaseMissing
    | SinkBlocked
    | SinkRetry
    | VerifyFailed
)
"""What tells of an error: its class, and what it says."""
