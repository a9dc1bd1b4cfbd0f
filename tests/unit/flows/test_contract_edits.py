"""An edit of a contract that meets an error on the way is applied by the next step."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lodestream.contracts import Contract, Field
from lodestream.errors import CatalogUnavailable, RegistryUnavailable
from lodestream.flows.flow import Flow
from lodestream.flows.keyed.flow import KeyedFlow
from lodestream.flows.silver.contracted import ContractedFlow
from lodestream.pipeline.location import Location
from lodestream.pipeline.table import Table

_LAKE = SimpleNamespace(spark=SimpleNamespace(conf=SimpleNamespace(get=lambda key: "", set=lambda key, value: None)))
_TABLE = Table(name="silver.orders", tier="silver", kind="function", location=Location("pipeline.py", 1), keys=("id",))
FIRST = Contract("orders", "1.0.0", (Field("id", "bigint"),))
SECOND = Contract("orders", "1.1.0", (Field("id", "bigint"), Field("tip", "bigint")))


class Edits:
    """Changed once, as a file is: whoever does not apply it then is not told again."""

    def __init__(self) -> None:
        self._changed = True
        self.fails: list[Exception] = []

    def changed(self) -> bool:
        told, self._changed = self._changed, False
        return told

    def load(self) -> tuple[Contract, None, None]:
        if self.fails:
            raise self.fails.pop()
        return SECOND, None, None


@pytest.fixture(autouse=True)
def no_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Flow, "step", lambda self, rows: None)


def running(kind: type[ContractedFlow], edits: Edits, steps: list[Any]) -> Any:
    """A flow that has begun. `steps` are what its table says to each attempt to change it: an error, or nothing."""

    class Running(kind):  # type: ignore[misc, valid-type]
        def _evolve(self, wanted: Contract) -> dict[str, Any]:
            self.taken()
            return dict.fromkeys(self.tables, ())

        def create(self) -> Any:
            self.taken()

        def make(self, span: Any) -> Any:
            raise NotImplementedError

        def taken(self) -> None:
            error = steps.pop(0)
            if error is not None:
                raise error

    flow = Running(_LAKE, _TABLE, "run", (), inputs=("events",), contract=FIRST, edits=edits)
    flow._writer = SimpleNamespace(store=None)
    return flow


@pytest.mark.parametrize("error", [CatalogUnavailable("away"), RuntimeError("S3 said 503")])
def test_an_edit_that_met_an_error_is_applied_by_the_next_step(error: Exception) -> None:
    steps = [error, None]
    flow = running(ContractedFlow, Edits(), steps)
    with pytest.raises(type(error)):
        flow.step(10)
    assert flow.contract == FIRST
    flow.step(10)
    assert flow.contract == SECOND
    flow.step(10)
    assert not steps, "applied once"


def test_an_edit_that_could_not_be_read_because_the_registry_was_silent_is_read_again() -> None:
    edits = Edits()
    edits.fails = [RegistryUnavailable("away")]
    flow = running(ContractedFlow, edits, [None])
    with pytest.raises(RegistryUnavailable):
        flow.step(10)
    flow.step(10)
    assert flow.contract == SECOND


def test_the_siblings_of_a_keyed_table_follow_an_edit_that_met_an_error_halfway() -> None:
    steps = [None, CatalogUnavailable("away"), None]
    flow = running(KeyedFlow, Edits(), steps)
    flow._behind = False
    with pytest.raises(CatalogUnavailable):
        flow.step(10)
    flow.step(10)
    assert flow.contract == SECOND
    assert not steps, "feed, table and marks were made to fit again"
