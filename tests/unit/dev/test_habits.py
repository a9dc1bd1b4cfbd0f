"""What the repository promises about itself."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

HOME = Path(__file__).resolve().parents[3]


def load(path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(path.parent))
    spec = importlib.util.spec_from_file_location(f"habit_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_ci_runs_check_and_test_and_nothing_else():
    lines = [line for line in (HOME / ".ci" / "run").read_text().splitlines() if "./dev" in line]
    assert lines == ["./dev check || status=1", "./dev test || status=1"]


def test_the_command_reference_is_what_the_commands_say(monkeypatch):
    reference = load(HOME / "docs" / "reference.py", monkeypatch)
    assert (HOME / "docs" / "commands.md").read_text() == reference.reference(), "run ./dev docs"


def test_snippets_are_found_with_their_language_and_file(monkeypatch, tmp_path):
    check = load(HOME / "docs" / "check.py", monkeypatch)
    document = tmp_path / "x.md"
    document.write_text(
        "a\n```sh\nlode plan\n```\n<!-- before: touch x -->\n"
        "- b\n  ```sql file=gold/a.sql\n  select 1\n  ```\n```text\nno\n```\n"
    )
    found = [(one.line, one.language, one.file, one.body.strip()) for one in check.snippets(document)]
    assert found == [
        (2, "sh", None, "lode plan"),
        (5, "sh", None, "touch x"),
        (7, "sql", "gold/a.sql", "select 1"),
        (10, "text", None, "no"),
    ]


@pytest.mark.parametrize(
    ("language", "body"),
    [
        ("sh", "false"),
        ("python", "raise SystemExit(1)"),
        (
            "python",
            "from lodestream import Pipeline\np = Pipeline('p')\np.gold('a', sql='select 1 as x from silver.nope')",
        ),
        ("toml", "[profiles.local.kafka]\nbootstrp = 'x'"),
        ("sql", "select from where"),
        ("json", "{"),
        ("rust", "fn main() {}"),
    ],
)
def test_a_wrong_snippet_is_caught(monkeypatch, tmp_path, language, body):
    check = load(HOME / "docs" / "check.py", monkeypatch)
    done = check.run(check.Snippet(HOME / "README.md", 1, language, None, body), tmp_path)
    assert done.returncode != 0


def test_blocks_go_on_in_the_folder_where_the_last_one_ended(monkeypatch, tmp_path):
    check = load(HOME / "docs" / "check.py", monkeypatch)
    assert check.run(check.Snippet(HOME / "README.md", 1, "sh", None, "mkdir a; cd a"), tmp_path).returncode == 0
    assert check.run(check.Snippet(HOME / "README.md", 2, "sh", None, "test -d ../a"), tmp_path).returncode == 0


def test_the_licence_is_the_one_that_the_package_names():
    project = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]
    text = (HOME / "LICENSE").read_text()
    assert project["license"] == "Apache-2.0"
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_scripts_are_posix_shell():
    for shell in ("dash", "bash"):
        done = subprocess.run([shell, "-n", str(HOME / "dev")], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_every_tier_is_run_and_the_worst_end_counts(monkeypatch, capsys):
    tiers = load(HOME / "tests" / "tiers.py", monkeypatch)
    asked: list[str] = []

    def ran(arguments: list[str]) -> tuple[int, str]:
        asked.append(Path(arguments[0]).name)
        return (1, "1 failed in 2.00s") if "spark" in arguments[0] else (0, "3 passed in 1.00s")

    monkeypatch.setattr(tiers, "pytest", ran)
    monkeypatch.setattr(tiers, "TIERS", ("unit", "spark", "stack"))
    assert tiers.main([]) == 1
    assert asked == ["unit", "spark", "stack"]
    assert "unit   3 passed in 1.00s\nspark  1 failed in 2.00s\nstack  3 passed in 1.00s" in capsys.readouterr().out


def test_one_tier_or_anything_pytest_accepts(monkeypatch):
    tiers = load(HOME / "tests" / "tiers.py", monkeypatch)
    asked: list[list[str]] = []
    monkeypatch.setattr(tiers, "pytest", lambda arguments: (asked.append(arguments), (0, ""))[1])
    tiers.main(["unit", "-k", "x"])
    tiers.main(["tests/unit/cli", "-q"])
    spread = tiers.SPREAD["unit"]
    assert asked == [[str(HOME / "tests" / "unit"), *spread, "-k", "x"], ["tests/unit/cli", "-q"]]
