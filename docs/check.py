"""Run every snippet of the documentation. `./dev check` calls it.

    docs/check.py [FILE.md ...]

The blocks of one document run in order, in one scratch folder:

- `sh` runs in a shell, with `lode`, `python` and `pytest` of this repository;
- `python` runs as a program, and every Pipeline it makes must have a sound graph;
- `toml` must be a valid lode.toml, `yaml` a valid contract, `sql` a query, `json` a value;
- a block whose fence says `file=NAME` is written to that file instead;
- `text` and `mermaid` are for reading.

Links to files must lead somewhere.

What a document needs before a block runs stands in an HTML comment that begins with `before:`, as shell lines.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reference import FILE as COMMANDS
from reference import reference

REPO = Path(__file__).resolve().parents[1]
READ_ONLY = {"text", "mermaid", ""}
_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```\s*?$|<!-- before:(?P<before>.*?)-->",
    re.MULTILINE | re.DOTALL,
)
# In a document, `./dev` is the one of the clone that the reader stands in. Here the demo ends by itself, and the tests
# are only collected: CI runs them anyway.
_DEV = """#!/bin/sh
command=$1; shift
case $command in
    demo) exec "$REPO/dev" demo --once --events 500 "$@" ;;
    test) exec "$REPO/dev" test --collect-only -qq "$@" ;;
    *) exec "$REPO/dev" "$command" "$@" ;;
esac
"""
_PYTHON = """
from lodestream.pipeline import Pipeline
for name, value in list(globals().items()):
    if isinstance(value, Pipeline):
        value.graph()
"""
_CHECKS = {
    "toml": "from pathlib import Path; from lodestream.config import load_config; load_config(Path.cwd())",
    "yaml": "import sys; from pathlib import Path; from lodestream.contracts import load_contract; "
    "load_contract(Path(sys.argv[1]))",
    "sql": "import sys; from pathlib import Path; from lodestream.pipeline.location import Location; "
    "from lodestream.pipeline.sql import parse_query; "
    "parse_query(Path(sys.argv[1]).read_text(), Location(sys.argv[1], 1))",
    "json": "import json, sys; json.load(open(sys.argv[1]))",
}


@dataclass(frozen=True)
class Snippet:
    document: Path
    line: int
    language: str
    file: str | None
    body: str

    def __str__(self) -> str:
        return f"{self.document.relative_to(REPO)}:{self.line}: {self.language}"


def main(arguments: list[str]) -> int:
    documents = [Path(one).resolve() for one in arguments] or [REPO / "README.md", *sorted(REPO.glob("docs/**/*.md"))]
    failures = [] if arguments or _reference_is_current() else ["docs/commands.md"]
    for document in documents:
        failures += [*broken_links(document), *run_document(document)]
    print(f"docs: {len(documents)} documents, {len(failures)} failures")
    return 1 if failures else 0


def _reference_is_current() -> bool:
    if COMMANDS.is_file() and COMMANDS.read_text(encoding="utf-8") == reference():
        return True
    print("docs/commands.md is not what the command line says\n  fix: ./dev docs", file=sys.stderr)
    return False


def broken_links(document: Path) -> list[str]:
    """Links to files that are not there."""
    text = document.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
    missing = [one for one in targets if ":" not in one and not (document.parent / one).exists()]
    for one in missing:
        print(f"{document.relative_to(REPO)}: there is no {one}", file=sys.stderr)
    return missing


def run_document(document: Path) -> list[str]:
    """Failures of one document. After the first one the rest has lost its footing, so it stops there."""
    with tempfile.TemporaryDirectory(prefix="lode docs ") as scratch:
        for snippet in snippets(document):
            began = time.monotonic()
            done = run(snippet, Path(scratch))
            if done is not None and done.returncode != 0:
                print(f"{snippet}: failed\n{snippet.body}\n--- said:\n{done.stdout}", file=sys.stderr)
                return [str(snippet)]
            if done is not None:
                print(f"{snippet} ({time.monotonic() - began:.1f} s)", flush=True)
    return []


def snippets(document: Path) -> Iterator[Snippet]:
    text = document.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        if found["before"] is not None:
            yield Snippet(document, line, "sh", None, found["before"])
            continue
        language, _, rest = found["info"].strip().partition(" ")
        file = re.search(r"file=(\S+)", rest)
        body = re.sub(f"^{found['indent']}", "", found["body"], flags=re.MULTILINE)
        yield Snippet(document, line, language, file[1] if file else None, body)


def run(snippet: Snippet, scratch: Path) -> subprocess.CompletedProcess[str] | None:
    if snippet.file:
        target = scratch / snippet.file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(snippet.body, encoding="utf-8")
        return None
    if snippet.language in READ_ONLY:
        return None
    if snippet.language == "sh":
        # The next block goes on in the folder where this one ended, as in the reader's terminal.
        return _call(["sh", "-euc", f'{snippet.body}\npwd > "$SCRATCH/.folder"'], scratch)
    if snippet.language == "python":
        (scratch / "snippet.py").write_text(snippet.body + _PYTHON, encoding="utf-8")
        return _call([sys.executable, str(scratch / "snippet.py")], scratch)
    if snippet.language not in _CHECKS:
        problem = f"no way to run {snippet.language!r}; if it is output, call it text"
        return subprocess.CompletedProcess([], 1, problem)
    name = "lode.toml" if snippet.language == "toml" else f"snippet.{snippet.language}"
    target = scratch / name
    target.write_text(snippet.body, encoding="utf-8")
    try:
        return _call([sys.executable, "-c", _CHECKS[snippet.language], str(target)], scratch)
    finally:
        target.unlink()


def _call(command: list[str], scratch: Path) -> subprocess.CompletedProcess[str]:
    (scratch / "dev").write_text(_DEV)
    (scratch / "dev").chmod(0o755)
    folder = scratch / ".folder"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=folder.read_text().strip() if folder.is_file() else scratch,
        env={**os.environ, "PATH": path, "REPO": str(REPO), "SCRATCH": str(scratch)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
