"""An edit of a contract that meets an error on the way is applied by the next step."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lodestream.contracts import Contract, Field
from lodestream.errors import CatalogUnavailable, RegistryUnavailable
from lodestream.flows.applying import opening
from lodestream.flows.applying.keyed import KeyedHome
from lodestream.flows.context import Context, Notices
from lodestream.flows.judging.terms import Contracted
from lodestream.flows.writing import home as silver_home
from lodestream.flows.writing.home import SilverHome
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


class Catalog:
    """`says` is its answer to each attempt to change the table: an error, or nothing."""

    def __init__(self, says: list[Exception | None]) -> None:
        self.says = says

    def asked(self, *_given: Any, **_named: Any) -> dict[str, Any]:
        error = self.says.pop(0)
        if error is not None:
            raise error
        return {_TABLE.name: ()}


def kept_by(edits: Edits) -> Contracted:
    def terms(contract: Contract | None, decode: object) -> Any:
        return SimpleNamespace(contract=contract)

    return Contracted(terms, FIRST, None, None, edits, Notices())


@pytest.mark.parametrize("error", [CatalogUnavailable("away"), RuntimeError("S3 said 503")])
def test_an_edit_that_met_an_error_is_applied_by_the_next_step(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, kept = Catalog([error, None]), kept_by(Edits())
    monkeypatch.setattr(silver_home, "follow_contract", catalog.asked)
    home = SilverHome(Context.of(_LAKE, _TABLE, "run"), kept)  # type: ignore[arg-type]
    with pytest.raises(type(error)):
        home.follow_edits(opened=True)
    assert kept.terms.contract == FIRST
    home.follow_edits(opened=True)
    assert kept.terms.contract == SECOND
    home.follow_edits(opened=True)
    assert not catalog.says, "applied once"


def test_an_edit_that_could_not_be_read_because_the_registry_was_silent_is_read_again() -> None:
    edits = Edits()
    edits.fails = [RegistryUnavailable("away")]
    kept = kept_by(edits)
    home = SilverHome(Context.of(_LAKE, _TABLE, "run"), kept)  # type: ignore[arg-type]
    with pytest.raises(RegistryUnavailable):
        home.follow_edits(opened=False)
    home.follow_edits(opened=False)
    assert kept.terms.contract == SECOND


def test_the_siblings_of_a_keyed_table_follow_an_edit_that_met_an_error_halfway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    catalog, kept = Catalog([None, CatalogUnavailable("away"), None, None]), kept_by(Edits())
    monkeypatch.setattr(opening, "follow_contract", catalog.asked)
    monkeypatch.setattr(opening.KeyedOpening, "open", catalog.asked)
    context: Any = Context.of(_LAKE, _TABLE, "run")  # type: ignore[arg-type]
    home = KeyedHome(context, kept, opening.KeyedOpening(context, lambda terms: Any, lambda terms: ()))
    with pytest.raises(CatalogUnavailable):
        home.follow_edits(opened=True)
    assert kept.terms.contract == FIRST, "batches are made by the old terms until every sibling fits"
    home.follow_edits(opened=True)
    assert kept.terms.contract == SECOND
    assert not catalog.says, "feed, table and marks were made to fit again"
