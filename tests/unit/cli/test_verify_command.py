"""`lode verify`: what it says, on the screen and as JSON, and how it ends. The comparison itself needs a JVM."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lodestream.cli.verify_screen import verification_text
from lodestream.config import load_config
from lodestream.engine import verify as engine
from lodestream.planning.project import open_project
from lodestream.recovery.verify.result import Differences, Sample, Verification, exit_code
from lodestream.starter import write_project

CHANGED = Sample("changed", {"day": "1", "n": "2"}, {"day": "1", "n": "3"}, ("n",))
ADDED = Sample("added", stored={"day": None, "n": "9" * 100})
MISSING = Sample("missing", fresh={"day": "4", "n": "1"})
EQUAL = Verification("gold.a", "equal", None, 17, Differences(1200, 1200), ms=2100.0)
DIFFERENT = Verification(
    "gold.b", "different", None, 18, Differences(7, 7, 1, 1, 1, {"n": 1}, (ADDED, MISSING, CHANGED)), ms=90.0
)
CLOCK = Verification("gold.c", "not comparable", "its answer depends on chance (rand)", 19, ms=5.0)
EXPIRED = Verification("gold.d", "cannot be verified", "snapshot 3 of its input silver.trips has expired", 20)


def test_a_difference_outweighs_what_could_not_be_verified_and_chance_is_no_failure():
    assert exit_code([EQUAL, CLOCK]) == 0
    assert exit_code([EQUAL, EXPIRED]) == 8
    assert exit_code([DIFFERENT, EXPIRED, EQUAL]) == 7
    assert exit_code([]) == 0


def test_an_equal_table_is_a_line():
    assert verification_text(EQUAL).plain == "gold.a: equal, 1,200 rows, snapshot 17, 2.1 s"
    sampled = Verification("gold.a", "equal", None, 17, Differences(1, 1), sampled=3, seed=7)
    assert verification_text(sampled).plain == "gold.a: equal, 1 row of 3 keys (--seed 7), snapshot 17, 0.0 s"


def test_a_difference_is_told_with_counts_and_samples():
    assert verification_text(DIFFERENT).plain.splitlines() == [
        "gold.b: different, 7 rows, snapshot 18, 0.1 s",
        "  rows: 1 added, 1 missing, 1 changed (n in 1); stored 7, computed 7",
        f"    + day=null  n={'9' * 77}...",
        "    - day=4  n=1",
        "    ~ day=1  n: 2 stored, 3 computed",
    ]


def test_state_that_differs_is_named_as_such():
    found = Verification("gold.b", "different", None, 18, Differences(7, 7), Differences(7, 7, changed=2))
    assert verification_text(found).plain.splitlines()[1] == (
        "  rows of its state: 2 changed; stored 7, computed 7"
    )  # fmt: skip


def test_why_nothing_was_compared_is_said():
    assert verification_text(EXPIRED).plain == (
        "gold.d: cannot be verified: snapshot 3 of its input silver.trips has expired, snapshot 20, 0.0 s"
    )
    missing = Verification("gold.d", "cannot be verified", "it has not been made yet")
    assert verification_text(missing).plain == "gold.d: cannot be verified: it has not been made yet"


@pytest.fixture
def answered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A project whose tables have just been verified; how they were asked for."""
    write_project(folder / "shop")
    asked: list[dict[str, Any]] = []

    def verify_tables(project: Any, patterns: Any, **given: Any) -> Iterator[Verification]:
        asked.append({"patterns": patterns, **given})
        return iter([EQUAL, DIFFERENT, EXPIRED])

    monkeypatch.setattr(engine, "verify_tables", verify_tables)
    return asked


def test_json_is_one_object_with_the_exit_code(lode, folder, answered):
    ended = lode("--project", folder / "shop", "verify", "--json", "--sample", "5", "--seed", "3", "gold.*")
    assert (ended.code, ended.json["exit_code"]) == (7, 7)
    assert [one["status"] for one in ended.json["tables"]] == ["equal", "different", "cannot be verified"]
    different = ended.json["tables"][1]
    assert (different["rows"]["changed"], different["rows"]["columns"]) == (1, {"n": 1})
    assert different["rows"]["samples"][2]["fresh"] == {"day": "1", "n": "3"}
    assert (answered[0]["patterns"], answered[0]["keys"], answered[0]["seed"]) == (("gold.*",), 5, 3)


def test_text_goes_to_standard_output_table_by_table(lode, folder, answered):
    ended = lode("--project", folder / "shop", "verify")
    assert ended.code == 7
    assert [line.split(",")[0] for line in ended.out.splitlines() if line.startswith("gold.")] == [
        "gold.a: equal",
        "gold.b: different",
        "gold.d: cannot be verified: snapshot 3 of its input silver.trips has expired",
    ]
    assert answered[0]["keys"] is None


def test_a_table_that_no_run_has_made_starts_no_spark(lode, folder):
    write_project(folder / "new")
    ended = lode("--project", folder / "new", "verify")
    assert ended.code == 8
    assert ended.out == "gold.daily_revenue: cannot be verified: it has not been made yet\n"
    assert "Starting Spark" not in ended.err
    assert not (folder / "new" / ".lode").exists(), "nothing is written"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gold.dayly_revenue",), "did you mean gold.daily_revenue"),
        (("silver.orders",), "silver.orders is no Gold table"),
        (("silver.*", "gold.*"), "only Gold equals a query"),
        (("--seed", "3"), "--seed chooses the keys of --sample"),
        (("--sample", "0"), "--sample"),
    ],
)
def test_wrong_words_are_explained(lode, folder, words, said):
    write_project(folder / "new")
    ended = lode("--project", folder / "new", "verify", *words)
    assert ended.code == 2
    assert said in ended.err


def test_tables_are_named_as_everywhere(folder):
    write_project(folder / "new")
    project = open_project(load_config(folder / "new"))
    for patterns in ((), ("*",), ("daily_revenue",), ("gold.*",), ("gold.daily_revenue", "daily*")):
        assert [table.name for table in engine.gold_tables(project, patterns)] == ["gold.daily_revenue"], patterns


def test_columns_that_a_contract_of_the_inputs_protects_are_hidden(folder):
    write_project(folder / "new")
    contract = folder / "new" / "contracts" / "order.yaml"
    text = contract.read_text()
    assert "name: region" in text
    contract.write_text(text.replace("name: region", "name: region\n        classification: restricted", 1))
    project = open_project(load_config(folder / "new"))
    assert engine.hidden_columns(project, project.graph["gold.daily_revenue"]) == {"region"}
