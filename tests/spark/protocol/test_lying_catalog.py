"""A real catalog that lies about its commits: rows come exactly once, and no flow calls published what is not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from protocol_line import Line

from lodestream.errors import Transient
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.lake import Lake
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


class Repeating:
    """A network between us and the catalog that delivers one of so many requests twice: at once, or a batch later.

    Whoever asked has heard the first answer and gone on; nobody is told of the second one.
    """

    def __init__(self, patch: pytest.MonkeyPatch, *, one_of: int) -> None:
        self._one_of = one_of
        self._asked = self.repeated = 0
        self._held: list[Callable[[], None]] = []
        requests = {Lake: ("append", "overwrite"), IcebergStore: ("fast_forward", "point", "commit_empty")}
        for owner, names in requests.items():
            for name in names:
                patch.setattr(owner, name, self._through(getattr(owner, name)))

    def deliver(self) -> None:
        """What was held back arrives now."""
        late, self._held = self._held, []
        for again in late:
            again()

    def _through(self, request: Callable[..., None]) -> Callable[..., None]:
        def sent(*given: Any, **named: Any) -> None:
            request(*given, **named)
            self._asked += 1
            if self._asked % self._one_of == 0:
                self.repeated += 1
                again = partial(self._again, request, given, named)
                self._held.append(again) if self.repeated % 2 else again()

        return sent

    def _again(self, request: Callable[..., None], given: tuple[Any, ...], named: dict[str, Any]) -> None:
        with suppress(Exception):
            request(*given, **named)


def drive(line: Line, flows: dict[str, Any], late: Callable[[], None] = lambda: None) -> None:
    """As a run does it: what passes is tried again, and a flow's word is held against its table."""
    for name, flow in flows.items():
        for _ in range(40):
            late()
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


def test_rows_come_once_although_requests_are_carried_out_twice(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    flows = line.flows()
    drive(line, flows)
    network = Repeating(monkeypatch, one_of=5)
    for _ in range(3):
        line.end += 20
        drive(line, flows, network.deliver)
    network.deliver()
    assert network.repeated > 3
    monkeypatch.undo()
    line.drive(flows)
    line.check()
    line.check_chain()
