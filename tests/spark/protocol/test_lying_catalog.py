"""A real catalog that lies about its commits: rows come exactly once, and no flow calls published what is not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from protocol_line import Line

from lodestream.errors import Transient
from lying_catalog import Kind, LyingCatalog


@pytest.fixture
def line(lake: Any) -> Line:
    made = Line(lake.config, lake.spark)
    made.end = 20
    made.drive(made.flows())
    return made


@pytest.fixture
def catalog(line: Line, lake: Any) -> Iterator[LyingCatalog]:
    lying = LyingCatalog(lake.config.state_dir / "catalog.db")
    yield lying
    lying.end()


def drive(line: Line, flows: dict[str, Any]) -> None:
    """As a run does it: what passes is tried again, and a flow's word is held against its table."""
    for name, flow in flows.items():
        for _ in range(40):
            try:
                published = flow.step(40)
            except Transient:
                continue
            if published is None:
                break
            store = line.lake.store(name)
            assert published.snapshot in {one.id for one in store.ancestors(store.head())}


@pytest.mark.parametrize("kind", ["yes", "no"])
def test_rows_come_once_through_a_catalog_that_lies(line: Line, catalog: LyingCatalog, kind: Kind) -> None:
    flows = line.flows()
    drive(line, flows)
    catalog.lie(kind, one_of=4)
    for _ in range(3):
        line.end += 20
        drive(line, flows)
    assert catalog.told(kind) > 3
    catalog.end()
    line.drive(flows)
    line.check()
    line.check_chain()
