"""Ten thousand arbitrary messages at Silver: each in exactly one place, and no batch stops.

A failure prints its seed; LODE_FUZZ_SEED=n runs it again, LODE_FUZZ_CASES=n runs more.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from counted import Counted
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame

from lodestream import Avro, Csv, Json, Kafka, Pipeline, Protobuf
from lodestream.config import Config
from lodestream.contracts import Record, column, rule
from lodestream.engine.build import Builder
from lodestream.flows.assemblies.bronze import bronze_flow
from lodestream.flows.flow import Flow
from lodestream.planning.project import Project
from lodestream.sources.kafka import BRONZE_DDL
from lodestream.sources.source import Position
from lodestream.tables.lake import Lake

SEED = int(os.environ.get("LODE_FUZZ_SEED", random.SystemRandom().randrange(10**9)))
CASES = int(os.environ.get("LODE_FUZZ_CASES", "10000"))
BATCH, DAMAGED = 1_000, 5
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Event",
        "fields": [
            {"name": "id", "type": ["null", "long"]},
            {"name": "name", "type": "string"},
            {"name": "nothing", "type": {"type": "array", "items": "null"}},
            {"name": "next", "type": ["null", "Event"]},
        ],
    }
)
PROTO = """syntax = "proto3";
message Event { optional int64 id = 1; string name = 2; repeated double parts = 3; Event next = 4; }
"""


class Event(Record):
    """Every kind of column, some of them required or limited."""

    version = "1.0.0"
    name = "events"
    rules = [rule("id is small", "id is null or id < 1000000")]  # noqa: RUF012

    place: int = column("bigint")
    id: int | None = column("int", minimum=-5)
    label: str | None = column(source="name", max_length=12)
    amount: Decimal | None = column("decimal(10,2)", rounding="half_up")
    at: datetime | None = column("timestamp_ntz")
    seen: datetime | None = column("timestamp", epoch="ms")
    flag: bool | None = column(coerce=True)
    tags: list[str] | None = column()
    inside: dict[str, float] | None = column()


NAMES = ("id", "name", "amount", "at", "seen", "flag", "tags", "inside", "ID", "x")
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=14)
    | st.sampled_from(["2024-01-31T12:00:00", "2024-02-30 00:00:00", "true", "7", "1e400", "NaN", "\ud800"])
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
)
EVENTS = st.dictionaries(st.sampled_from(NAMES), JSON, max_size=6)


def spelt(value: Any) -> bytes:
    return json.dumps(value).encode()


MESSAGES = st.none() | st.binary(max_size=60) | JSON.map(spelt) | EVENTS.map(spelt)


def messages(count: int) -> list[bytes | None]:
    """The same for the same seed: what Hypothesis draws, and each of those damaged in several ways."""
    found: list[bytes | None] = []

    @seed(SEED)
    @settings(
        max_examples=count // DAMAGED, phases=[Phase.generate], database=None, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(MESSAGES)
    def draw(drawn: bytes | None) -> None:
        found.append(drawn)

    draw()
    chance = random.Random(SEED)
    whole = [value for value in found if value]
    return found + [damaged(chance, whole) for _ in range(count - len(found))]


def damaged(chance: random.Random, whole: list[bytes]) -> bytes:
    """A message with bytes changed, cut out, doubled, or the end of another."""
    value = bytearray(chance.choice(whole))
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(value) + 1)
        match chance.randrange(4):
            case 0:
                value[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del value[at : at + chance.randint(1, 9)]
            case 2:
                value[at:at] = value[at : at + 5]
            case 3:
                other = chance.choice(whole)
                value[at:] = other[chance.randrange(len(other)) :]
    return bytes(value)


# Small on the wire, half a gigabyte when built: 65 million nulls, four million numbers, a hundred thousand brackets.
BOMBS: tuple[bytes, ...] = (
    b'{"id":1,"tags":["' + b'","' * 2_600_000 + b'"]}',
    b'{"id":1,"inside":' + b'{"a":' * 1_000_000,
    b"\x00\x00" + b"\x80\xa0\xfe\x3d" + b"\x00\x00",
    b"\x1a\x00" * 3_000_000,
    b"\x22\xff\xff\xff\x03" * 1_000_000,
    b"," * 4_000_000,
    b'{"name":"' + b"x" * 17_000_000 + b'"}',
)


class Given(Counted):
    """A list of messages as a topic of one partition."""

    def __init__(self, lake: Lake, values: list[bytes | None]) -> None:
        self._lake = lake
        self.values = values

    @property
    def end(self) -> int:
        return len(self.values)

    def read(self, since: Position, to: Position) -> DataFrame:
        now = datetime.now(UTC)
        rows = [
            (None, None if value is None else bytearray(value), None, "fuzz", 0, since["next"] + at, now)
            for at, value in enumerate(self.values[since["next"] : to["next"]])
        ]
        return self._lake.spark.createDataFrame(rows, BRONZE_DDL)


class Line:
    """One Bronze table and a Silver table for each format, over the same messages."""

    def __init__(self, config: Config, spark: Any) -> None:
        (config.root / "event.proto").write_text(PROTO)
        pipeline = _declared(config.root)
        self._project = Project(config, pipeline, pipeline.graph())
        self.lake = Lake(spark, config.catalog.name)
        self.source = Given(self.lake, [])
        graph = self._project.graph
        builder = Builder(self._project, spark, "fuzz", "nowhere:1")
        self._bronze = bronze_flow(self.lake, graph["bronze.fuzz"], "fuzz", self.source, BRONZE_DDL)
        self._silver = {table.name: builder.flow(table) for table in graph if table.tier == "silver"}

    def drive(self, table: str, rows: int) -> Iterator[Counter[str]]:
        yield from _steps(self._silver[table], rows)

    def add(self, values: list[bytes | None], rows: int) -> None:
        self.source.values.extend(values)
        for _ in _steps(self._bronze, rows):
            pass

    def places(self, table: str) -> Counter[int]:
        return Counter(row[0] for row in self.lake.whole(table).select("place").collect())

    def dead(self, table: str) -> dict[int, list[str]]:
        rows = self.lake.whole(f"{table}__dead").select("offset", "value", "reasons").collect()
        for row in rows:
            assert (None if row.value is None else bytes(row.value)) == self.source.values[row.offset]
            assert row.reasons
            assert all(row.reasons)
        assert len({row.offset for row in rows}) == len(rows), f"a letter of {table} came twice"
        return {row.offset: row.reasons for row in rows}


def _steps(flow: Flow, rows: int) -> Iterator[Counter[str]]:
    while (published := flow.step(rows)) is not None:
        yield Counter(published.rows)


def _declared(root: Path) -> Pipeline:
    pipeline = Pipeline("fuzz")
    pipeline.bronze("fuzz", Kafka("fuzz"))

    def placed(fuzz: DataFrame) -> DataFrame:
        return fuzz.withColumn("place", fuzz["_lode.offset"])

    decoders = {
        "as_json": Json(),
        "as_avro": Avro(schema=AVRO, columns="id bigint, name string"),
        "as_protobuf": Protobuf(
            message="Event", descriptor=str(root / "event.proto"), columns="id bigint, name string"
        ),
        "as_csv": Csv("id int, name string"),
    }
    for name, decode in decoders.items():
        placed.__name__ = name
        pipeline.silver(decode=decode, contract=Event if name == "as_json" else None)(placed)  # type: ignore[call-overload]
    return pipeline


def test_each_message_is_in_exactly_one_place_and_no_batch_stops(lake: Any) -> None:
    line = Line(lake.config, lake.spark)
    line.add(messages(CASES), CASES)
    counted: Counter[str] = Counter()
    for batch in line.drive("silver.as_json", BATCH):
        assert batch["in"] == batch["out"] + batch["dead"] + batch["filtered"] + batch["duplicates"], f"seed {SEED}"
        counted += batch
    assert counted["in"] == CASES, f"seed {SEED}"
    assert counted["out"] > CASES // 50, f"too few good ones to mean anything, seed {SEED}"
    for table in ("silver.as_json", "silver.as_avro", "silver.as_protobuf", "silver.as_csv"):
        for _ in line.drive(table, CASES):
            pass
        _once(line, table, CASES)
    line.add(list(BOMBS), len(BOMBS))
    for table in ("silver.as_json", "silver.as_avro", "silver.as_protobuf", "silver.as_csv"):
        for _ in line.drive(table, CASES):
            pass
        _once(line, table, CASES + len(BOMBS))
        assert all(CASES + at in line.dead(table) for at in range(len(BOMBS))), f"{table} took a message that inflates"


def _once(line: Line, table: str, count: int) -> None:
    kept, dead = line.places(table), line.dead(table)
    places = kept + Counter(list(dead))
    wrong = {place: line.source.values[place] for place in range(count) if places[place] != 1}
    assert not wrong, f"seed {SEED}, {table}: not in exactly one place: {dict(list(wrong.items())[:3])}"
    assert sum(places.values()) == count
