"""A keyed batch goes down through few modules and never up, and the documentation has them in order."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from feed_line import BRONZE, ITEMS, FeedLine, Item, some_day
from feed_model import Change
from pyspark.sql import DataFrame
from walk import Walk, walked

from lodestream import Json, Kafka, Pipeline
from lodestream.contracts import write_contract
from lodestream.planning.project import Project

MOST_MODULES = 30
DOCS = Path(__file__).parents[3] / "docs" / "how-it-works.md"
# So many batches that the keys of the marks are held in memory, as in a run that has gone on for a while.
BATCHES = 6


def test_a_keyed_batch_goes_down_through_few_modules(lake: Any, tmp_path: Path) -> None:
    line = FeedLine(lake.config, lake.spark)
    line.project = Project(lake.config, *declared(tmp_path / "item.yaml"))
    flows = line.flows()
    for number in range(BATCHES):
        line.changes += some_changes(line, number)
        line.drive(flows)
    line.changes += some_changes(line, BATCHES)
    flows[BRONZE].step(100)
    with walked() as walk:
        published = flows[ITEMS].step(100)
    assert published is not None
    assert {name: published.rows[name] for name in ("in", "upserted", "deleted", "dead")} == {
        "in": 4, "upserted": 2, "deleted": 1, "dead": 1
    }  # fmt: skip
    say(walk)
    assert walk.upward == set()
    assert walk.modules == documented()
    assert len(walk.modules) <= MOST_MODULES


def documented() -> list[str]:
    """The modules of the walk as the documentation lists them."""
    _, _, section = DOCS.read_text().partition("## A keyed batch, module by module")
    section, _, _ = section.partition("\n## ")
    return re.findall(r"^\d+\. \[[^\]]*\]\(\.\./src/lodestream/(.*)\.py\)", section, re.MULTILINE)


def declared(file: Path) -> tuple[Any, Any]:
    write_contract(Item.contract(), file)
    pipeline = Pipeline("line")
    pipeline.bronze("items_raw", Kafka("items"))
    event = Json("id string, weight bigint, day string, op string, at bigint")

    @pipeline.silver(decode=event, contract=file, sequence_by="at", delete_when="op = 'd'", partition_by="days(day)")
    def items(items_raw: DataFrame) -> DataFrame:
        return items_raw

    return pipeline, pipeline.graph()


def some_changes(line: FeedLine, at: int) -> list[Change]:
    """A row that comes, one that is updated, one that is deleted, and one that breaks the contract."""
    first = len(line.changes)
    return [
        Change(f"new {at}", (at, some_day(at % 3)), at, 0, first),
        Change("updated", (at, some_day(0)), at, 0, first + 1),
        Change(f"new {at - 1}", (at, some_day(0)), at, 0, first + 2, gone=True),
        Change("refused", (None, some_day(0)), at, 0, first + 3),
    ]


def say(walk: Walk) -> None:
    for number, (module, entered) in enumerate(walk.entered.items(), 1):
        sys.stdout.write(f"{number}. {module}: {', '.join(sorted(entered))}\n")
