"""What an error out of a batch means: only what passes by itself is retried."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lodestream.engine.failures import Backoff, DiskFull, FileGone, Unexpected, explain
from lodestream.errors import (
    BrokerUnavailable,
    CatalogUnavailable,
    ExecutorLost,
    JavaEnded,
    RegistryUnavailable,
    RuntimeMissing,
    SourceGap,
    StorageUnavailable,
)
from lodestream.runtime.java_process import how_it_ended

KAFKA = "org.apache.kafka.common.errors."


class Java:
    """A Java exception as py4j shows it: its class, its message, its cause."""

    def __init__(self, chain: Sequence[tuple[str, str]]) -> None:
        (self._name, self._message), *rest = chain
        self._cause = Java(rest) if rest else None

    def getClass(self) -> Java:  # noqa: N802
        return self

    def getName(self) -> str:  # noqa: N802
        return self._name

    def getMessage(self) -> str:  # noqa: N802
        return self._message

    def getCause(self) -> Java | None:  # noqa: N802
        return self._cause


def raised(*chain: tuple[str, str]) -> Exception:
    error = Exception(": ".join(chain[0]))
    error.java_exception = Java(chain)  # type: ignore[attr-defined]
    return error


def task_failed(text: str) -> Exception:
    """Spark gives the driver a task's error as text."""
    return raised(("org.apache.spark.SparkException", f"Job aborted due to stage failure: Lost task 0.0: {text}"))


@pytest.mark.parametrize(
    "error",
    [
        raised((KAFKA + "TimeoutException", "Timeout of 60000ms expired")),
        raised(("org.apache.spark.SparkException", "x"), (KAFKA + "DisconnectException", "null")),
        task_failed(KAFKA + "NotLeaderOrFollowerException: not the leader"),
        task_failed("java.util.concurrent.TimeoutException: Cannot fetch record for offset 7 in 120000 milliseconds"),
    ],
)
def test_what_kafka_calls_retriable_is_retried(error: Exception) -> None:
    found = explain(error, "bronze.trips")
    assert isinstance(found, BrokerUnavailable)
    assert "Exception" in str(found.why)


@pytest.mark.parametrize(
    "error",
    [
        # A bug in our use of Kafka, or in a function, must not be retried for minutes.
        task_failed(
            "java.lang.NullPointerException\n\tat org.apache.kafka.clients.consumer.KafkaConsumer.poll(K.java)"
        ),
        raised(("org.apache.kafka.common.config.ConfigException", "Invalid value x for configuration y")),
        raised(("org.apache.kafka.common.KafkaException", "Failed to construct kafka consumer")),
        raised((KAFKA + "SerializationException", "Error deserializing")),
        raised((KAFKA + "TopicAuthorizationException", "Not authorized")),
        raised(("java.util.concurrent.TimeoutException", "Futures timed out after [300 seconds]")),
        ValueError("org.apache.kafka is what I wrote"),
    ],
)
def test_a_mistake_that_mentions_kafka_is_not_taken_for_a_silent_broker(error: Exception) -> None:
    assert isinstance(explain(error, "bronze.trips"), Unexpected)


def test_a_silent_registry_is_known_by_the_text_of_the_worker() -> None:
    text = (
        "Traceback (most recent call last):\n  File x\n"
        "lodestream.errors.RegistryUnavailable: the schema registry at http://r does not answer\n"
        "  why: timed out\n  fix: check"
    )
    for error in (task_failed(f"org.apache.spark.api.python.PythonException: {text}"), Exception(text)):
        found = explain(error, "silver.trips")
        assert isinstance(found, RegistryUnavailable)
        assert (found.what, found.why) == ("the schema registry at http://r does not answer", "timed out")


def test_our_own_errors_stay_as_they_are_and_resources_are_named() -> None:
    gap = SourceGap("x")
    assert explain(gap, "t") is gap
    assert isinstance(explain(raised(("java.io.IOException", "No space left on device")), "t"), DiskFull)
    assert isinstance(explain(raised(("java.lang.OutOfMemoryError", "Java heap space")), "t"), RuntimeMissing)


def test_a_file_that_maintenance_removed_under_a_batch_is_tried_again():
    inside = (
        "Job aborted: Lost task 0.0: org.apache.iceberg.exceptions.NotFoundException: File does not exist: /w/a.parquet"
    )
    found = explain(raised(("org.apache.spark.SparkException", inside)), "silver.trips")
    assert isinstance(found, FileGone)
    assert "a.parquet" in found.why


@pytest.mark.parametrize(
    "said",
    [
        "Missing required files to delete: /w/a.parquet",
        "Found conflicting files that can contain records matching true: [/w/a.parquet]",
        "Cannot commit, missing data files: [/w/a.parquet]",
    ],
)
def test_a_change_that_compaction_overtook_is_made_again(said):
    found = explain(raised(("org.apache.iceberg.exceptions.ValidationException", said)), "silver.trips")
    assert isinstance(found, CatalogUnavailable)
    wrong = raised(("org.apache.iceberg.exceptions.ValidationException", "Cannot find field 'fare' in schema"))
    assert isinstance(explain(wrong, "silver.trips"), Unexpected)


S3 = "software.amazon.awssdk.services.s3.model.S3Exception"


@pytest.mark.parametrize(
    "error",
    [
        raised((S3, "Please reduce your request rate. (Service: S3, Status Code: 503, Request ID: 7)")),
        raised(("org.apache.spark.SparkException", "x"), (S3, "Internal (Service: S3, Status Code: 500)")),
        task_failed(f"{S3}: Slow Down (Service: S3, Status Code: 503, Request ID: 7)"),
        task_failed("software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request: x"),
        task_failed("org.apache.hadoop.fs.s3a.AWSServiceThrottledException: s3a://b/x: SlowDown"),
    ],
)
def test_a_busy_bucket_is_waited_for(error: Exception) -> None:
    found = explain(error, "silver.trips")
    assert isinstance(found, StorageUnavailable)
    assert "Exception" in str(found.why)


@pytest.mark.parametrize(
    "text",
    [
        "Access Denied (Service: S3, Status Code: 403, Request ID: 7)",
        "The bucket does not exist (Service: S3, Status Code: 404)",
    ],
)
def test_a_bucket_that_refuses_us_is_not_waited_for_long(text: str) -> None:
    assert isinstance(explain(task_failed(f"{S3}: {text}"), "silver.trips"), Unexpected)


@pytest.mark.parametrize(
    "said",
    [
        "ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: worker lost: 10.0.0.3",
        "org.apache.spark.shuffle.MetadataFetchFailedException: Missing an output location for shuffle 3",
        "org.apache.spark.shuffle.FetchFailedException: Failed to connect to host/10.0.0.3:40111",
        "TaskResultLost (result lost from block manager)",
        "org.apache.spark.SparkException: Checkpoint block rdd_7_0 not found!",
        "java.lang.IllegalStateException: Block rdd_12_1 is not available",
    ],
)
def test_a_lost_executor_or_block_is_made_again(said: str) -> None:
    found = explain(task_failed(said), "silver.trips")
    assert isinstance(found, ExecutorLost)
    assert said.split()[0] in str(found.why)


def test_records_that_went_while_they_were_read_are_asked_for_again() -> None:
    gone = "org.apache.kafka.clients.consumer.OffsetOutOfRangeException: Fetch position out of range"
    assert isinstance(explain(task_failed(gone), "bronze.trips"), BrokerUnavailable)
    lost = "org.apache.spark.sql.kafka010.KafkaIllegalStateException: [KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] x"
    assert isinstance(explain(task_failed(lost), "bronze.trips"), BrokerUnavailable)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (3, "ran out of heap"),
        (52, "ran out of heap"),
        (-9, "was killed (SIGKILL)"),
        (137, "was killed (SIGKILL)"),
        (1, "ended with code 1"),
    ],
)
def test_how_java_ended_is_said_in_words_with_a_code_of_its_own(code: int, said: str) -> None:
    error = how_it_ended(code)
    assert isinstance(error, JavaEnded)
    assert said in error.what
    assert "exit code 9" in str(error.fix)
    assert error.exit_code == 9


def test_pauses_stay_at_the_longest_however_often_it_is_tried() -> None:
    backoff = Backoff(15.0, give_up=1e9)
    pauses = [backoff.failed() for _ in range(2_000)]
    assert all(pause is not None and 0.7 * 15.0 <= pause <= 15.0 for pause in pauses[10:])
