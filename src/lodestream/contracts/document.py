"""YAML with its line numbers kept, so that every problem of a file can point at its place."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lodestream.contracts.file_text import file_text
from lodestream.errors import ContractError

_BIGGEST = 2_000_000


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a contract, where, and what to write instead."""

    what: str
    line: int | None = None
    fix: str | None = None


class _Loader(yaml.SafeLoader):
    """Dates stay text: the contract decides what type they are."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class Entry:
    """A value of the document together with its line; problems found in it are collected, not raised."""

    def __init__(self, node: yaml.Node, problems: list[Problem], loader: _Loader) -> None:
        self.node = node
        self.line: int = node.start_mark.line + 1
        self.problems = problems
        self._loader = loader

    def wrong(self, what: str, fix: str | None = None) -> None:
        self.problems.append(Problem(what, self.line, fix))

    def plain(self) -> Any:
        """The value as plain Python: dict, list, str, int, float, bool or None."""
        return self._loader.construct_object(self.node, deep=True)

    def entries(self, what: str, known: Collection[str]) -> dict[str, Entry]:
        """The entries of a mapping; unknown and doubled keys are problems."""
        if not isinstance(self.node, yaml.MappingNode):
            self.wrong(f"{what} must be a mapping", "write `key: value` lines")
            return {}
        self._loader.flatten_mapping(self.node)
        found: dict[str, Entry] = {}
        for key_node, value_node in self.node.value:
            key = Entry(key_node, self.problems, self._loader)
            name = str(key_node.value)
            if name in found:
                key.wrong(f"{what} has the key {name} twice", "keep one of them")
            elif name not in known:
                key.wrong(f"unknown key {name} in {what}", nearest(name, known))
            found[name] = Entry(value_node, self.problems, self._loader)
        return found

    def items(self, what: str) -> Iterator[Entry]:
        if not isinstance(self.node, yaml.SequenceNode):
            self.wrong(f"{what} must be a list", "write `- ` before each entry")
            return
        for node in self.node.value:
            yield Entry(node, self.problems, self._loader)

    def text(self, what: str) -> str:
        value = self.plain()
        if isinstance(value, str):
            return value
        raw = self.node.value if isinstance(self.node, yaml.ScalarNode) else "..."
        self.wrong(f"{what} must be text", f'write it in quotes: "{raw}"')
        return str(raw)

    def choice(self, what: str, choices: Collection[str]) -> str:
        value = self.text(what)
        if value not in choices:
            self.wrong(f"{what} cannot be {value}", nearest(value, choices))
        return value

    def flag(self, what: str) -> bool:
        value = self.plain()
        if not isinstance(value, bool):
            self.wrong(f"{what} must be true or false", "write true or false, without quotes")
        return value is True

    def whole(self, what: str) -> int:
        value = self.plain()
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        self.wrong(f"{what} must be a whole number")
        return 0


def nearest(name: str, known: Collection[str]) -> str:
    """A hint: the nearest valid key, or all of them when none is near."""
    lowered = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return f"did you mean {lowered[close[0]]}?" if close else f"use one of {', '.join(sorted(known))}"


def read_document(file: Path, subject: str) -> str:
    """The text of a file, or ContractError when it has none."""
    try:
        return file_text(file)
    except OSError as failure:
        raise ContractError(f"contract {file} cannot be read", why=str(failure.strerror)) from failure
    except UnicodeDecodeError as failure:
        raise refuse([Problem("the file is not UTF-8 text", fix="save it as UTF-8")], subject) from failure


def parse_document(text: str, problems: list[Problem]) -> Entry | None:
    if len(text) > _BIGGEST:
        problems.append(Problem("the file is larger than 2 MB", fix="a contract describes one table"))
        return None
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
    except yaml.YAMLError as failure:
        problems.append(_syntax(failure))
        return None
    if node is None:
        problems.append(Problem("the file is empty", 1, "start with apiVersion: v3.0.2"))
        return None
    if _grows(node):
        problems.append(Problem("the anchors of the file repeat or contain themselves too often", 1))
        return None
    return Entry(node, problems, loader)


def _syntax(failure: yaml.YAMLError) -> Problem:
    mark = getattr(failure, "problem_mark", None)
    detail = getattr(failure, "problem", None) or str(failure).splitlines()[0]
    return Problem(f"not valid YAML: {detail}", mark.line + 1 if mark else None)


def _grows(root: yaml.Node, most: int = 200_000) -> bool:
    """Whether aliases blow the document up: a few lines of nested anchors can stand for billions of nodes."""
    waiting, seen = [root], 0
    while waiting:
        node = waiting.pop()
        seen += 1
        if seen > most:
            return True
        if isinstance(node, yaml.MappingNode):
            waiting.extend(part for pair in node.value for part in pair)
        elif isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
    return False


def refuse(problems: list[Problem], subject: str) -> ContractError:
    """One error for all problems of a contract, in the order of its lines."""
    ordered = sorted(problems, key=lambda problem: problem.line or 0)
    lines = [_line(subject, problem) for problem in ordered]
    if len(ordered) == 1:
        return ContractError(lines[0], fix=ordered[0].fix, problems=tuple(ordered))
    hinted = [
        f"{line}\n      fix: {problem.fix}" if problem.fix else line
        for line, problem in zip(lines, ordered, strict=True)
    ]
    return ContractError(f"{subject} has {len(ordered)} errors\n    " + "\n    ".join(hinted), problems=tuple(ordered))


def _line(subject: str, problem: Problem) -> str:
    return f"{subject}:{problem.line}: {problem.what}" if problem.line else f"{subject}: {problem.what}"
