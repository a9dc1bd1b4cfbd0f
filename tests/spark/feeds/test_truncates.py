"""Truncates and tombstones among the changes of a table, arriving in any order and cut into any batches."""

from __future__ import annotations

import json
import os
import random
import sys
from typing import Any

from counted import Counted
from feed_model import Change, upserted, versions
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit, unhex

from lodestream import Debezium, Json, Kafka, Pipeline
from lodestream.contracts import Record, column
from lodestream.engine.build import Builder
from lodestream.flows.assemblies.bronze import bronze_flow
from lodestream.planning.project import Project
from lodestream.sources.kafka import BRONZE_DDL
from lodestream.sources.source import Position
from lodestream.tables.lake import Lake

BRONZE, ITEMS, VERSIONS = "bronze.items_raw", "silver.items", "silver.item_versions"
KEYS = 12
SEED = int(os.environ.get("LODE_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
ROUNDS = int(os.environ.get("LODE_TRUNCATE_ROUNDS", "1"))


class Item(Record):
    """The columns of the table; what Debezium adds is not among them."""

    version = "1.0.0"
    owner = "tests"

    id: int = column(key=True)
    size: int | None


class Told(Counted):
    """Messages from memory, one offset after the other."""

    def __init__(self, spark: SparkSession, messages: list[bytes | None]) -> None:
        self._spark = spark
        self._messages = messages

    @property
    def end(self) -> int:  # type: ignore[override]
        return len(self._messages)

    def read(self, since: Position, to: Position) -> DataFrame:
        chosen = list(enumerate(self._messages))[since["next"] : to["next"]]
        values = ", ".join(f"({offset}L, {_hex(value)})" for offset, value in chosen)
        frame = self._spark.sql(f"SELECT * FROM VALUES {values} AS v(offset, value)")
        return frame.select(
            lit(None).cast("binary").alias("key"),
            unhex("value").alias("value"),
            lit(None).cast("array<struct<key:string,value:binary>>").alias("headers"),
            lit("items").alias("topic"),
            lit(0).alias("partition"),
            "offset",
            lit("2024-01-01").cast("timestamp").alias("timestamp"),
        )


def test_each_truncate_ends_what_stands_before_it_whenever_it_is_told(lake: Any) -> None:
    sys.stdout.write(f"replay: LODE_SEED={SEED} LODE_TRUNCATE_ROUNDS={ROUNDS}\n")
    chance = random.Random(SEED)
    messages: list[bytes | None] = []
    project = Project(lake.config, *declared())
    envelopes = story(chance, 60 * ROUNDS)
    # First in order: a truncate and inserts in one batch. Then the rest in any order, single truncates among it.
    early = {one["source"]["lsn"] for one in envelopes[: 20 * ROUNDS]}
    late = [one for one in envelopes if one["source"]["lsn"] not in early]
    chance.shuffle(late)
    while late or early:
        size = len(early) or min(len(late), chance.choice([1, 15, 40]))
        for envelope in envelopes[:size] if early else [late.pop() for _ in range(size)]:
            messages.append(json.dumps(envelope).encode())
            messages += [None] if envelope["op"] == "d" else []
        early = set()
        drive(project, lake.spark, messages)
        check(lake.spark, [json.loads(one) for one in messages if one is not None])
    assert not any(lake.spark.catalog.tableExists(f"lode.{name}__dead") for name in (ITEMS, VERSIONS))


def test_a_column_of_another_format_that_is_named_as_debezium_names_its_own_is_a_column(lake: Any) -> None:
    """`t` and `tombstone` are words like any other there: such rows were left out as truncates."""
    pipeline = Pipeline("machines")
    pipeline.bronze("items_raw", Kafka("items"))
    pipeline.silver("items", sql="SELECT * FROM bronze.items_raw", decode=Json("id bigint, __op string, n bigint"),
                    keys=["id"], sequence_by="n")  # fmt: skip
    operations = {1: "t", 2: "tombstone", 3: "c"}
    messages = [json.dumps({"id": key, "__op": one, "n": key}).encode() for key, one in operations.items()]
    drive(Project(lake.config, pipeline, pipeline.graph()), lake.spark, [*messages])
    rows = lake.spark.table(f"lode.{ITEMS}").collect()
    assert {row["id"]: row["__op"] for row in rows} == operations


def declared() -> tuple[Any, Any]:
    pipeline = Pipeline("cdc")
    pipeline.bronze("items_raw", Kafka("items"))
    decode = Debezium(Json("id bigint, size bigint"))

    @pipeline.silver(decode=decode, contract=Item, sequence_by="__lsn", delete_when="__deleted")
    def items(items_raw: DataFrame) -> DataFrame:
        return items_raw

    @pipeline.silver(decode=decode, contract=Item, sequence_by="__lsn", delete_when="__deleted", history=True)
    def item_versions(items_raw: DataFrame) -> DataFrame:
        return items_raw

    return pipeline, pipeline.graph()


def drive(project: Project, spark: SparkSession, messages: list[bytes | None]) -> None:
    """As a fresh process would: nothing is remembered but what the tables hold."""
    run = f"run{len(messages)}"
    own = Lake(spark.newSession(), project.config.catalog.name)
    graph = project.graph
    builder = Builder(project, spark, run, "nowhere:1")
    bronze = bronze_flow(own, graph[BRONZE], run, Told(own.spark, messages), BRONZE_DDL)
    for flow in (bronze, *(builder.flow(table) for table in graph if table.tier == "silver")):
        while flow.step(10_000) is not None:
            pass


def check(spark: SparkSession, envelopes: list[dict[str, Any]]) -> None:
    changes = [change for one in envelopes for change in changes_of(one)]
    held = spark.table(f"lode.{ITEMS}").collect()
    assert sorted((str(row.id), row.size) for row in held) == sorted(
        (k, row[0]) for k, row in upserted(changes).items()
    )
    kept = [
        (str(row.id), (row.size,), row.valid_from, row.valid_to, row.is_current)
        for row in spark.table(f"lode.{VERSIONS}").collect()
    ]
    assert len(kept) == len(set(kept))
    assert set(kept) == versions(changes)


def changes_of(envelope: dict[str, Any]) -> list[Change]:
    """What the oracle makes of it: a truncate deletes every key there can be."""
    at = envelope["source"]["lsn"]
    if envelope["op"] == "t":
        return [Change(str(key), (None,), at, 0, 0, gone=True) for key in range(KEYS)]
    row = envelope["before"] if envelope["op"] == "d" else envelope["after"]
    return [Change(str(row["id"]), (row["size"],), at, 0, 0, gone=envelope["op"] == "d")]


def story(chance: random.Random, count: int) -> list[dict[str, Any]]:
    told = []
    for lsn in range(100, 100 + count):
        op = "t" if lsn == 110 or chance.random() < 0.06 else chance.choice("ccud")
        row = {"id": chance.randrange(KEYS), "size": lsn}
        before, after = (row, None) if op == "d" else (None, None if op == "t" else row)
        told.append({"op": op, "before": before, "after": after, "source": {"lsn": lsn}})
    return told


def _hex(value: bytes | None) -> str:
    return "CAST(NULL AS string)" if value is None else f"'{value.hex()}'"
