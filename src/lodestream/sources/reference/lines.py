"""A reference file by its lines, as a person sees it in an editor: which columns it names, and where a row stands."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Literal

from lodestream.config import nearest
from lodestream.errors import SourceUnreadable

KEEPS = "readers still see the rows before, and the next good version is taken by itself"
_SHOWN = 80


def header_of(path: Path) -> list[str]:
    """The columns that a CSV file names in its first line."""
    line = next((text for _, text in written_lines(path)), "")
    return next(csv.reader([line]), [])


def in_file_order(path: Path, declared: Sequence[str], header: Sequence[str]) -> list[str]:
    """The declared columns in the order of the header, which names each of them once and nothing else.

    Case does not matter, as in Spark. Raises `SourceUnreadable` with everything that is wrong with the header.
    """
    known = {name.lower(): name for name in declared}
    wrong = _doubled(header)
    missing = [name for name in declared if name.lower() not in map(str.lower, header)]
    extra = [name for name in dict.fromkeys(header) if name.lower() not in known]
    wrong += [f"there is no column {name}{_nearest(name, extra)}" for name in missing]
    wrong += [f"column {_quoted(name)} is not declared{_nearest(name, missing or declared)}" for name in extra]
    if wrong:
        raise _misnamed(path, wrong, f"let it name {', '.join(declared)}, in any order, or declare other columns")
    return [known[name.lower()] for name in header]


def named_once(path: Path, header: Sequence[str]) -> None:
    """Where no columns are declared, the file's own names must tell them apart."""
    wrong = _doubled(header) or ([] if header else ["the file is empty"])
    if wrong:
        raise _misnamed(path, wrong, "let it name each column once")


def line_numbers(path: Path, rows: Sequence[int], *, header: bool) -> dict[int, int]:
    """On which lines rows stand, the first row being 0. Empty lines are no rows."""
    wanted, found = {row + header: row for row in rows}, {}
    for number, (line, _) in enumerate(written_lines(path)):
        if number in wanted:
            found[wanted[number]] = line
    return found


def line_with(path: Path, text: str) -> int | None:
    """The first line that is this text."""
    return next((number for number, line in written_lines(path) if line == text), None)


def written_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, with their numbers from 1."""
    with _opened(path) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line.rstrip("\r\n")


def fault(
    text: str, kind: Literal["csv", "json"], columns: Mapping[str, str], nulls: Sequence[str], hidden: Sequence[str]
) -> str:
    """What is wrong with a record that does not fit: `columns` and their types in file order, `nulls` did not convert.

    Values of `hidden` columns are not shown.
    """
    values: Mapping[str, object]
    if kind == "csv":
        cells = next(csv.reader([text]), [])
        if len(cells) != len(columns):
            many = f"{len(cells):,} value{'' if len(cells) == 1 else 's'}"
            return f"{many} for {len(columns):,} columns ({', '.join(columns)})"
        values = {name: cell or None for name, cell in zip(columns, cells, strict=True)}
    else:
        try:
            values = json.loads(text)
        except ValueError as error:
            return f"no JSON: {error}"
        if not isinstance(values, dict):
            return "no JSON object"
    wrong = [name for name in nulls if values.get(name) is not None]
    said = [f"{name} is no {columns[name]}{_value(values[name], name in hidden)}" for name in wrong]
    return ", ".join(said) or "it does not fit the declared columns"


def _value(value: object, hidden: bool) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "" if hidden else f": {text if len(text) <= _SHOWN else text[: _SHOWN - 1] + '…'}"


def _doubled(header: Sequence[str]) -> list[str]:
    lower = [name.lower() for name in header]
    doubled = [name for place, name in enumerate(header) if lower.index(name.lower()) != place]
    return [f"column {_quoted(name)} comes {lower.count(name.lower())} times" for name in dict.fromkeys(doubled)]


def _nearest(name: str, others: Sequence[str]) -> str:
    close = nearest(name.strip(), others)
    return f" (did you mean {_quoted(close)}?)" if close else ""


def _quoted(name: str) -> str:
    return name if name and name == name.strip() else f'"{name}"'


def _misnamed(path: Path, wrong: Sequence[str], fix: str) -> SourceUnreadable:
    return SourceUnreadable(
        f"reference file {path} does not have the columns that it should have",
        why=f"line 1: {'; '.join(wrong)}",
        fix=f"{fix}; {KEEPS}",
    )


def _opened(path: Path) -> IO[str]:
    # A byte order mark is no part of the first name; bytes that are no UTF-8 are Spark's to judge.
    settings = {"encoding": "utf-8-sig", "errors": "replace", "newline": "\n"}
    if path.suffix == ".gz":
        return gzip.open(path, "rt", **settings)  # type: ignore[call-overload, no-any-return]
    if path.suffix == ".bz2":
        return bz2.open(path, "rt", **settings)  # type: ignore[call-overload, no-any-return]
    return path.open(**settings)  # type: ignore[call-overload, no-any-return]
