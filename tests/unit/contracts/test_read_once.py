"""A contract is read and parsed once, and an edit is seen at once."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lodestream.cli.main import run_command
from lodestream.config import load_config
from lodestream.contracts import document, file_text, load_contract, odcs_read
from lodestream.engine.contract_files import contract_files
from lodestream.flows.judging.terms import ContractEdits
from lodestream.planning.project import contract_of, open_project

EXAMPLES = Path(__file__).parents[3] / "examples"
CONTRACT = EXAMPLES / "nyc_taxi" / "contracts" / "trip.yaml"

_opened: Counter[str] | None = None


def _count(event: str, args: tuple[Any, ...]) -> None:
    if _opened is not None and event == "open" and str(args[0]).endswith(".yaml"):
        _opened[str(args[0])] += 1


sys.addaudithook(_count)


@pytest.mark.parametrize("example", ["nyc_taxi", "orders"])
def test_a_plan_reads_and_parses_each_contract_once(
    example: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    global _opened
    parsed: Counter[str] = Counter()

    def parse(text: str, problems: list[document.Problem]) -> document.Entry | None:
        parsed[text] += 1
        return document.parse_document(text, problems)

    monkeypatch.setattr(odcs_read, "parse_document", parse)
    monkeypatch.setattr(file_text, "_KEPT", {})
    odcs_read._read.cache_clear()
    odcs_read._parsed.cache_clear()
    _opened = Counter()
    try:
        assert run_command(["--project", str(EXAMPLES / example), "plan", "--json"]) == 0
        opened = _opened
    finally:
        _opened = None
    assert json.loads(capsys.readouterr().out)["tables"]
    assert len(opened) > 1
    assert {Path(file).name: times for file, times in opened.items() if times > 1} == {}
    assert sorted(parsed.values()) == [1] * len(opened)


def version(text: str, number: int) -> str:
    return text.replace("version: ", f"version: {number}", 1)


@pytest.fixture
def contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that counts as settled at once, so that it is kept in memory."""
    monkeypatch.setattr(file_text, "_SETTLED", -1.0)
    file = tmp_path / "trip.yaml"
    file.write_text(CONTRACT.read_text())
    return file


def test_an_edit_of_the_same_size_is_seen_also_when_its_time_is_set_back(contract: Path) -> None:
    contract.write_text(version(contract.read_text(), 1))
    before, stat = load_contract(contract), contract.stat()
    assert load_contract(contract) is before
    time.sleep(0.02)  # a tick of the file system's clock
    contract.write_text(contract.read_text().replace(f"version: {before.version}", "version: 9" + before.version[1:]))
    os.utime(contract, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert contract.stat().st_size == stat.st_size
    assert load_contract(contract).version == "9" + before.version[1:]


def test_a_file_that_was_just_written_is_read_again_however_fast_it_is_edited(tmp_path: Path) -> None:
    file, text = tmp_path / "trip.yaml", version(CONTRACT.read_text(), 0)
    wanted = load_contract(CONTRACT).version
    for number in range(1, 10):
        file.write_text(text.replace(f"version: 0{wanted}", f"version: {number}{wanted}"))
        assert load_contract(file).version == f"{number}{wanted}"


def test_a_replaced_file_is_another_one(contract: Path, tmp_path: Path) -> None:
    before = load_contract(contract)
    other = tmp_path / "other.yaml"
    other.write_text(version(contract.read_text(), 7))
    other.replace(contract)
    assert load_contract(contract).version == f"7{before.version}"


def test_an_edit_during_a_run_is_seen(contract: Path, tmp_path: Path) -> None:
    (tmp_path / "lode.toml").touch()
    (tmp_path / "pipeline.py").write_text(
        "from lodestream import Files, Json, Pipeline\n\n"
        'taxi = Pipeline("taxi")\n'
        'taxi.bronze("raw", Files("data", format="json"))\n\n\n'
        '@taxi.silver(decode=Json("trip.yaml"), contract="trip.yaml")\n'
        "def trips(raw):\n    return raw\n"
    )
    table = open_project(load_config(tmp_path)).graph["silver.trips"]
    edits = ContractEdits(contract_files(table), lambda: (contract_of(table), None, None))
    before, _, _ = edits.load()
    assert before is not None
    assert not edits.changed()
    assert edits.load()[0] is before
    time.sleep(0.02)
    contract.write_text(version(contract.read_text(), 3))
    assert edits.changed()
    after, _, _ = edits.load()
    assert after is not None
    assert after.version == f"3{before.version}"
