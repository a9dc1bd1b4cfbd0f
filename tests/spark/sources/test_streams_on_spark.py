"""Structured Streaming sources by the publish protocol: the table is the checkpoint."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lodestream import Stream
from lodestream.errors import ConfigError, SourceRecreated
from lodestream.sources.stream.reading import StreamSource


class Died(Exception):
    """The process ends here."""


class Pulling:
    """A flow's loop over one stream source; every pull may be by a new process."""

    def __init__(self, bronze: Callable[[str, str], Any], spark: Any, declared: Stream, scratch: Path) -> None:
        self.spark, self.declared, self.scratch = spark, declared, scratch
        self.table = bronze(self.source().ddl(), "stream")

    def source(self) -> StreamSource:
        return StreamSource(self.spark, self.declared, self.scratch)

    def pull(self, publish: Any = None, **options: Any) -> bool:
        shutil.rmtree(self.scratch, ignore_errors=True)
        done = self.source().pull(self.table.position(), publish or self.table.publish, 1000, **options)
        assert not list(self.scratch.glob("*")), "nothing is left of the scratch folder"
        return done

    def dies_after_publishing(self, rows: Any, position: Any) -> None:
        self.table.publish(rows, position)
        raise Died

    def dies_before_publishing(self, rows: Any, position: Any) -> None:
        rows.count()
        raise Died

    def values(self) -> Counter[Any]:
        return Counter(row.value for row in self.table.rows().select("value").collect())


@pytest.fixture
def pulling(bronze: Any, lake: Any, tmp_path: Path) -> Callable[[Stream], Pulling]:
    return lambda declared: Pulling(bronze, lake.spark, declared, tmp_path / "scratch ü")


def text_stream(folder: Path, **options: str) -> Stream:
    return Stream("text", {"path": str(folder), **options})


def put(folder: Path, *names: str) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text("".join(f"{name}-{line}\n" for line in range(3)))


def lines(*names: str) -> Counter[Any]:
    return Counter(f"{name}-{line}" for name in names for line in range(3))


def test_rows_come_once_whether_it_dies_before_or_after_publishing(
    tmp_path: Path, pulling: Callable[[Stream], Pulling]
) -> None:
    folder = tmp_path / "in"
    put(folder, "a", "b")
    flow = pulling(text_stream(folder, maxFilesPerTrigger="1"))
    with pytest.raises(Died):
        flow.pull(flow.dies_before_publishing)
    assert flow.table.batches() == 0
    with pytest.raises(Died):
        flow.pull(flow.dies_after_publishing)
    assert flow.table.batches() == 1
    put(folder, "c")
    with pytest.raises(Died):
        flow.pull(flow.dies_after_publishing)
    with pytest.raises(Died):
        flow.pull(flow.dies_before_publishing)
    assert flow.pull()
    assert flow.values() == lines("a", "b", "c")
    assert not flow.pull()
    assert flow.values() == lines("a", "b", "c")
    assert flow.table.batches() == 3


def test_a_source_that_deletes_what_is_done_never_deletes_what_was_not_published(
    tmp_path: Path, pulling: Callable[[Stream], Pulling]
) -> None:
    folder = tmp_path / "in"
    names = [f"f{number}" for number in range(6)]
    put(folder, *names)
    flow = pulling(text_stream(folder, maxFilesPerTrigger="1", cleanSource="delete"))
    with pytest.raises(Died):
        flow.pull(flow.dies_before_publishing)
    flow.pull(stopping=lambda: flow.table.batches() >= 2)
    with pytest.raises(Died):
        flow.pull(flow.dies_before_publishing)
    flow.pull()
    assert flow.values() == lines(*names)


def test_a_rollback_of_the_table_rolls_the_stream_back(tmp_path: Path, pulling: Callable[[Stream], Pulling]) -> None:
    folder = tmp_path / "in"
    put(folder, "a")
    flow = pulling(text_stream(folder))
    for name in ("b", "c"):
        flow.pull()
        put(folder, name)
    flow.pull()
    assert flow.table.batches() == 3
    flow.table.rollback(2)
    assert flow.values() == lines("a")
    flow.pull()
    assert flow.values() == lines("a", "b", "c")


def test_a_source_log_that_spark_compacts_is_carried_along(
    tmp_path: Path, pulling: Callable[[Stream], Pulling], lake: Any
) -> None:
    lake.spark.conf.set("spark.sql.streaming.fileSource.log.compactInterval", "3")
    folder = tmp_path / "in"
    names = [f"f{number}" for number in range(8)]
    put(folder, *names)
    flow = pulling(text_stream(folder, maxFilesPerTrigger="1"))
    flow.pull(stopping=lambda: flow.table.batches() >= 5)
    assert flow.table.batches() == 5
    flow.pull()
    assert flow.values() == lines(*names)
    assert flow.table.batches() == 8


def test_a_numbered_stream_has_no_hole_and_no_double_over_ten_pulls(pulling: Callable[[Stream], Pulling]) -> None:
    flow = pulling(Stream("rate-micro-batch", {"rowsPerBatch": "10", "numPartitions": "2"}))
    for number in range(10):
        publish = (flow.table.publish, flow.dies_after_publishing, flow.dies_before_publishing)[number % 3]
        try:
            flow.pull(publish)
        except Died:
            assert publish != flow.table.publish
    values = flow.values()
    assert values == Counter(range(len(values)))
    assert len(values) == 70


def test_a_clock_driven_stream_goes_on_where_the_table_is(pulling: Callable[[Stream], Pulling]) -> None:
    flow = pulling(Stream("rate", {"rowsPerSecond": "100", "numPartitions": "1"}))
    while flow.table.batches() < 3:
        flow.pull()
    values = flow.values()
    assert values == Counter(range(len(values)))
    assert len(values) > 0


def test_a_position_is_small_json_and_its_own(tmp_path: Path, pulling: Callable[[Stream], Pulling], lake: Any) -> None:
    folder = tmp_path / "in"
    put(folder, "a")
    flow = pulling(text_stream(folder))
    flow.pull()
    position = flow.table.position()
    assert len(json.dumps(position)) < 1_500
    other = StreamSource(lake.spark, text_stream(tmp_path / "elsewhere"), tmp_path / "scratch")
    with pytest.raises(SourceRecreated, match="elsewhere"):
        other.pull(position, flow.table.publish, 10)


def test_state_that_would_bloat_every_snapshot_is_refused_before_publishing(
    tmp_path: Path, pulling: Callable[[Stream], Pulling], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "in"
    put(folder, "a")
    flow = pulling(text_stream(folder))
    monkeypatch.setattr("lodestream.sources.stream.checkpoint.LARGEST", 100)
    with pytest.raises(ConfigError, match="bytes of its own state"):
        flow.pull()
    assert flow.table.batches() == 0
