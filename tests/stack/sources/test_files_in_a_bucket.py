"""Files in a real S3 bucket, through Arrow alone."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from lodestream import Files
from lodestream.errors import ConfigError, SourceGap, SourceRewritten, StorageUnavailable
from lodestream.sources.files.reading import FilesSource


class Reading:
    """A flow's loop with the rows kept in memory."""

    def __init__(self, spark: Any, declared: Files) -> None:
        self.spark = spark
        self.declared = declared
        self.since: Any = None
        self.rows: list[Any] = []
        self.restart()

    def restart(self) -> None:
        self.source = FilesSource(self.spark, self.declared, dict)

    def step(self, rows: int = 10**9) -> bool:
        since, to = self.plan(rows)
        if since == to:
            return False
        self.rows += self.source.read(since, to).collect()
        self.since = json.loads(json.dumps(to))
        return True

    def plan(self, rows: int = 10**9) -> tuple[Any, Any]:
        latest = self.source.latest()
        assert latest is not None
        since = self.since or self.source.start(latest)
        self.source.check(since, latest)
        return since, self.source.cap(since, latest, rows)

    def values(self) -> list[tuple[str, bytes]]:
        return sorted((row.file, bytes(row.value)) for row in self.rows)


@pytest.fixture
def reading(spark: Any, bucket: Any) -> Reading:
    path = f"s3://{bucket.name}/landing"
    return Reading(spark, Files(path, pattern="**/*.json*", settle="0 s", options=bucket.options))


def test_objects_are_read_once_over_batches_and_restarts(reading: Reading, bucket: Any) -> None:
    assert reading.source.latest() is None, "the prefix does not exist yet"
    for number in range(6):
        bucket.put(f"landing/day={number % 2}/{number} ü.json", b'{"n":%d}\n' % number)
    bucket.put("landing/z.json.gz", gzip.compress(b'{"n":6}\n'))
    bucket.put("landing/_temporary/0/part.json", b"{}")
    bucket.put("landing/empty.json", b"")
    while reading.step(rows=2):
        reading.restart()
    root = f"s3://{bucket.name}/landing"
    expected = [(f"{root}/day={n % 2}/{n} ü.json", b'{"n":%d}' % n) for n in range(6)]
    expected.append((f"{root}/z.json.gz", b'{"n":6}'))
    assert reading.values() == sorted(expected)


def test_an_object_that_is_overwritten_after_it_was_read_stops_the_flow(reading: Reading, bucket: Any) -> None:
    bucket.put("landing/a.json", b"{}\n")
    reading.step()
    bucket.put("landing/a.json", b'{"longer":1}\n')
    with pytest.raises(SourceRewritten, match=r"landing/a\.json changed"):
        reading.step()


def test_an_object_that_is_gone_before_it_is_read_is_a_gap(reading: Reading, bucket: Any) -> None:
    bucket.put("landing/a.json", b"{}\n")
    since, to = reading.plan()
    bucket.delete("landing/a.json")
    with pytest.raises(Exception, match="lode-error") as raised:
        reading.source.read(since, to).collect()
    error = reading.source.explain(raised.value)
    assert isinstance(error, SourceGap)
    assert "landing/a.json disappeared" in error.what


def test_wrong_keys_are_a_configuration_error_and_a_dead_endpoint_may_come_back(spark: Any, bucket: Any) -> None:
    bucket.put("landing/a.json", b"{}\n")
    wrong = Files(f"s3://{bucket.name}/landing", options={**bucket.options, "secret_key": "wrong"})
    with pytest.raises(ConfigError, match="refused us"):
        FilesSource(spark, wrong, dict).latest()
    away = Files(f"s3://{bucket.name}/landing", options={**bucket.options, "endpoint": "http://127.0.0.1:9"})
    with pytest.raises(StorageUnavailable):
        FilesSource(spark, away, dict).latest()


def test_keys_come_from_the_environment(spark: Any, bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.put("landing/a.json", b"{}\n")
    options = {**bucket.options, "secret_key": "${env:INBOX_SECRET}"}
    declared = Files(f"s3://{bucket.name}/landing", settle="0 s", options=options)
    with pytest.raises(ConfigError, match="INBOX_SECRET is not set"):
        FilesSource(spark, declared, dict)
    monkeypatch.setenv("INBOX_SECRET", bucket.options["secret_key"])
    assert (FilesSource(spark, declared, dict).latest() or {})["files"] == 1
