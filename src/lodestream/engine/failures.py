"""What an exception out of a batch means: retry, stop, and what to tell the user."""

from __future__ import annotations

import random
import re
import time

from lodestream.errors import (
    BrokerUnavailable,
    ExecutorLost,
    Final,
    LodeError,
    RuntimeMissing,
    StorageUnavailable,
    Transient,
)
from lodestream.sources.codecs.frame import registry_failure
from lodestream.tables.jvm import causes, translate

# Kafka's own retriable errors that a reader can meet. A task's error reaches the driver as text, so names are searched.
_KAFKA_PASSING = re.compile(
    r"org\.apache\.kafka\.(?:common\.errors|clients\.consumer)\.("
    "Timeout|Disconnect|Network|NotLeaderOrFollower|NotLeaderForPartition|LeaderNotAvailable|CoordinatorNotAvailable|"
    "CoordinatorLoadInProgress|NotCoordinator|ReplicaNotAvailable|UnknownTopicOrPartition|UnknownTopicId|"
    "OffsetNotAvailable|FencedLeaderEpoch|UnknownLeaderEpoch|FetchSessionIdNotFound|FetchSessionTopicId|"
    "InconsistentTopicId|InvalidFetchSessionEpoch|KafkaStorage|ThrottlingQuotaExceeded|RetriableCommitFailed"
    r")Exception\b"
    # Spark's own words when a poll gave nothing in time.
    r"|java\.util\.concurrent\.TimeoutException: Cannot fetch record"
    # Records went while they were read. The next try asks the broker, and names the gap if there is one.
    r"|org\.apache\.kafka\.clients\.consumer\.OffsetOutOfRangeException\b|\[KAFKA_DATA_LOSS\b"
)
# What Iceberg and Hadoop say of a missing file; in a task's error, again as text.
_FILE_GONE = re.compile(r"(org\.apache\.iceberg\.exceptions\.NotFoundException|java\.io\.FileNotFoundException): ")


# What a bucket says when it is busy or out of reach: by its status, by its words, or by a client that got no answer.
_STORAGE_PASSING = re.compile(
    r"(?:software\.amazon\.awssdk|com\.amazonaws|org\.apache\.hadoop\.fs\.s3a|org\.apache\.iceberg\.aws)\.[\w.$]+: "
    r".*?(?:Status Code: (?:5\d\d|429)|\b(?:SlowDown|Slow Down|RequestTimeout|InternalError|ServiceUnavailable|"
    r"ThrottlingException|Unable to execute HTTP request|Acquire operation took longer|timed out|timeout|"
    r"Connection reset|Connection refused)\b)"
    r"|org\.apache\.hadoop\.fs\.s3a\.(?:AWSServiceThrottled|AWSStatus500|AWSServiceIO|AWSNoResponse)Exception: ",
    re.IGNORECASE,
)
# What Spark says when part of its cluster went away under a job. It has tried by itself before, and given up.
_EXECUTOR_LOST = re.compile(
    r"ExecutorLostFailure|ExecutorDeadException|\bFetchFailed|MetadataFetchFailedException|FetchFailedException|"
    r"TaskResultLost|Remote RPC client disassociated|Executor heartbeat timed out|"
    r"BlockNotFoundException|Block \S+ (?:not found|is not available)|Failed to fetch block|"
    r"Could not (?:find|get) block|Checkpoint block \S+ not found|BlockManagerMaster|"
    r"Failed to (?:get|store) broadcast_\S+|(?:Worker|Executor) \S+ (?:lost|decommissioned)|worker lost",
)
# Batches are idempotent, so what nobody has described yet may be tried again; a mistake stays one, and soon stops.
MOST_TRIES = 5
# After so many doublings every pause is the longest one; a thousand of them would be no number any more.
_MOST_DOUBLINGS = 30


class Unexpected(Transient):
    """Something no error of ours describes: tried again a few times, then the flow stops."""

    def stopped(self, table: str, tries: int) -> Crashed:
        fix = f"`lode events --table {table} --name flow.stopped --json` has the traceback"
        return Crashed(f"{table} stopped on an unexpected error, after {tries} tries", why=self.why, fix=fix)


class Crashed(Final):
    """An unexpected error that did not pass; the traceback is in the event."""


class DiskFull(Transient):
    """No space left on a disk we write to."""


class FileGone(Transient):
    """A file was removed while a batch read it, as maintenance of a table may do; the next try reads its new state."""


def explain(error: Exception, table: str) -> LodeError:
    """One of our errors for whatever came out of a batch."""
    if isinstance(error, LodeError):
        return error
    chain = causes(error)
    text = " ".join(f"{name}: {message}" for name, message in chain) or str(error)
    if "No space left on device" in text:
        return DiskFull(f"{table}: no space left on the device", why=_first_line(text), fix="free some disk space")
    if isinstance(error, MemoryError) or "java.lang.OutOfMemoryError" in text:
        return RuntimeMissing(
            f"{table}: out of memory", why=_first_line(text), fix="raise spark.driver_memory or lower max_batch_rows"
        )
    silent = registry_failure(error) or registry_failure(text)
    if silent is not None:
        return silent
    kafka = _KAFKA_PASSING.search(text)
    if kafka is not None:
        return BrokerUnavailable(f"{table}: Kafka did not answer in time", why=_first_line(text[kafka.start() :]))
    known = translate(error, table)
    if known is not None:
        return known
    gone = _FILE_GONE.search(text)
    if gone is not None:
        return FileGone(
            f"{table}: a file that a batch was reading is gone",
            why=_first_line(text[gone.start() :]),
            fix="if it does not pass: keep snapshots longer than a batch takes, or restore the file",
        )
    busy = _STORAGE_PASSING.search(text)
    if busy is not None:
        return StorageUnavailable(
            f"{table}: the storage did not answer as it should",
            why=_first_line(text[busy.start() :]),
            fix="if it does not pass: look at the bucket's own status, its limits and the network",
        )
    lost = _EXECUTOR_LOST.search(text)
    if lost is not None:
        return ExecutorLost(
            f"{table}: Spark lost an executor, or what it kept there",
            why=_first_line(text[_start_of_line(text, lost.start()) :]),
            fix="if it does not pass: look at the cluster's executors, their memory first",
        )
    said = " ".join(str(error).split())
    why = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return Unexpected(
        f"{table}: an unexpected error", why=_first_line(why), fix=f"it is tried again {MOST_TRIES} times"
    )


def _start_of_line(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _first_line(text: str) -> str:
    line = text.strip().splitlines()[0] if text.strip() else ""
    return line if len(line) <= 400 else line[:397] + "..."


class Backoff:
    """Waits that grow while an error lasts, and a limit after which we stop hoping."""

    def __init__(self, longest: float, give_up: float) -> None:
        self._longest = longest
        self._give_up = give_up
        self._since: float | None = None
        self._tries = 0

    def failed(self) -> float | None:
        """The pause before the next try, or None when it has lasted too long."""
        now = time.monotonic()
        self._since = self._since if self._since is not None else now
        if now - self._since > self._give_up:
            return None
        self._tries += 1
        pause = min(self._longest, 0.1 * 2.0 ** min(self._tries, _MOST_DOUBLINGS))
        return pause * random.uniform(0.7, 1.0)  # noqa: S311 (jitter, not secrecy)

    def succeeded(self) -> None:
        self._since, self._tries = None, 0

    @property
    def tries(self) -> int:
        return self._tries

    @property
    def give_up(self) -> float:
        """For how many seconds an error may last."""
        return self._give_up
