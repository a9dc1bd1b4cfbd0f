"""Listings fit the terminal: no line is longer, no name and no number is cut, and what is left out matters least."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType

from lodestream.cli.commands.flow import flows_view
from lodestream.cli.commands.plan import PlanView
from lodestream.cli.commands.status import status_view
from lodestream.cli.screen import Screen
from lodestream.engine import Status, TableStatus
from lodestream.engine.flow_control import FlowState
from lodestream.planning.plan import PlannedTable

LONG = "gold.revenue_by_region_and_channel"
WHY = "silver.customer_addresses: addresses.csv has no column postal_code, which is declared for it"


def lines(shown: RenderableType, width: int) -> list[str]:
    with (console := Console(width=width, force_terminal=True, color_system=None)).capture() as captured:
        console.print(shown)
    return captured.get().splitlines()


def status(error: str | None = None) -> Status:
    facts: dict[str, Any] = {"lag_seconds": 5400.0, "freshness_s": 5401.0, "last_batch": 1_794_884_400.0}
    tables = (
        TableStatus(LONG, "gold", rows=12_345_678, lag_events=1_234_567, batch=1_041, state="running", **facts),
        TableStatus("silver.orders", "silver", rows=5, lag_events=0, batch=7, state="waiting", **facts),
        TableStatus("silver.customer_addresses", "silver", state="blocked", error=error),
    )
    return Status("shop", tables, None)


@pytest.mark.parametrize("error", [None, WHY])
@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_status_fits_any_terminal(width: int, error: str | None) -> None:
    shown = lines(status_view(status(error)), width)
    assert max(map(len, shown)) <= width
    gold = next(line for line in shown if LONG in line)
    for kept in ("12,345,678", "running", *(["1,234,567"] if width > 60 else [])):
        assert kept in gold, f"{kept} is cut or gone at {width}"
    assert len([line for line in shown if line.startswith("silver.orders")]) == 1
    reason = "addresses.csv has no column postal_code" if width < 160 else "addresses.csv has"
    assert error is None or reason in " ".join(" ".join(shown).split())


def test_status_leaves_out_what_matters_least_first() -> None:
    titles = {width: lines(status_view(status()), width)[0].split() for width in (160, 110, 90, 75, 60)}
    assert titles[160] == ["table", "rows", "lag", "behind", "fresh", "last", "batch", "state"]
    assert "1,041 at 2026-11-17 03:00:00Z" in "".join(lines(status_view(status()), 160))
    assert "2026-11-17 03:00:00Z" in "".join(lines(status_view(status()), 110))
    assert "1,041" not in "".join(lines(status_view(status()), 110))
    assert titles[90] == ["table", "rows", "lag", "behind", "fresh", "state"]
    assert titles[75] == ["table", "rows", "lag", "fresh", "state"]
    assert titles[60] == ["table", "rows", "state"]


def planned(name: str, tier: str, inputs: tuple[str, ...], source: str | None, owner: str) -> PlannedTable:
    reason = "every measure is a sum of its rows, so a change is added to the stored groups"
    facts: dict[str, Any] = {"lookups": (), "contract": None, "keys": (), "partition_by": (), "location": "pipeline.py"}
    cheaper = "without count(DISTINCT customer_identifier) it would be delta"
    return PlannedTable(
        name, tier, "sql", inputs, source=source, strategy="affected", reason=reason, cheaper=cheaper, every=60.0,
        owner=owner, **facts,
    )  # fmt: skip


@pytest.mark.parametrize("width", [60, 80, 160])
def test_the_plan_fits_any_terminal_and_folds_no_name(width: int) -> None:
    tables = (
        planned("bronze.orders_raw", "bronze", (), "kafka shop.orders", "shop"),
        planned(LONG, "gold", ("silver.orders", "silver.customer_addresses"), None, "revenue-operations"),
    )
    shown = lines(PlanView(tables, Path("/shop")), width)
    assert max(map(len, shown)) <= width
    for whole in (LONG, "silver.customer_addresses", "revenue-operations", "kafka shop.orders"):
        assert any(whole in line for line in shown), f"{whole} is folded or gone at {width}"
    text = " ".join(" ".join(shown).split())
    assert "affected" in text
    if width < 160:
        assert "every measure is a sum of its rows, so a change is added to the stored groups" in text
        assert len(shown) <= 12, "a word a line is no plan"


@pytest.mark.parametrize("width", [60, 80, 160])
def test_the_flows_of_a_run_fit_any_terminal(width: int) -> None:
    error = {"name": "SourceUnreadable", "what": WHY}
    flows = [
        FlowState(LONG, "running", "r1", 1_041, 12_345_678),
        FlowState("silver.customer_addresses", "blocked", "r1", 0, 0, error),
    ]
    shown = lines(flows_view(flows), width)
    assert max(map(len, shown)) <= width
    assert any(LONG in line and "12,345,678" in line for line in shown)
    assert WHY in " ".join(" ".join(shown).split())


def test_what_goes_into_a_file_or_another_program_is_not_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    reason = "a reason that says a lot, " * 20
    Screen(json=False, quiet=False).show({}, status_view(status(reason)))
    assert reason.strip() in capsys.readouterr().out.replace("\n", " ")
