"""A rebuild that a person or a verification asks for is made, although one is under way or the process ends."""

from __future__ import annotations

from typing import Any, cast

import pytest

from lodestream.flows.gold import table as gold_table
from lodestream.flows.gold.table import GoldTable


def test_a_request_during_a_rebuild_keeps_its_note(monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[object] = []
    monkeypatch.setattr(gold_table, "forget_rebuild", forgotten.append)
    gold = GoldTable.__new__(GoldTable)
    gold._store = cast("Any", "store")
    gold.rebuilds_asked, gold.rebuilds_done = 2, 0
    assert gold.rebuilt(1)
    assert (gold.rebuilding, forgotten) == (True, []), "a process that ends now leaves the second to the next run"
    assert gold.rebuilt(2)
    assert (gold.rebuilding, forgotten) == (False, ["store"])
