"""On which line of a TOML text each key stands: tomllib parses, but does not tell."""

from __future__ import annotations

import re

Path = tuple[str, ...]

_PART = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|\'([^\']*)\'|([A-Za-z0-9_-]+))\s*')
_BLANK = re.compile(r"(?:\s+|#[^\n]*)+")
# One piece of a value: a string of any of the four kinds, a comment, a bracket, or anything else.
_VALUE_PIECE = re.compile(
    r'"""(?:[^\\]|\\.)*?"""+|\'\'\'.*?\'\'\'+|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}\n]|[^\[\]{}\n"\'#]+',
    re.DOTALL,
)


def key_lines(text: str) -> dict[Path, int]:
    """The line of each key and table header of a TOML text that parses."""
    found: dict[Path, int] = {}
    table: Path = ()
    position = _skip_blank(text, 0)
    while position < len(text):
        line = text.count("\n", 0, position) + 1
        if text[position] == "[":
            start = position + (2 if text.startswith("[[", position) else 1)
            table, position = _read_key(text, start)
            path = table
            position = _end_of_line(text, position)
        else:
            key, position = _read_key(text, position)
            path = table + key
            position = _skip_value(text, position + 1)
        for depth in range(1, len(path) + 1):
            found.setdefault(path[:depth], line)
        position = _skip_blank(text, position)
    return found


def line_of(path: Path, lines: dict[Path, int]) -> int:
    """The line of a key, or of the nearest thing around it (keys of inline tables have no own entry)."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _skip_blank(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position


def _end_of_line(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _read_key(text: str, position: int) -> tuple[Path, int]:
    parts: list[str] = []
    while match := _PART.match(text, position):
        parts.append(next(part for part in match.groups() if part is not None))
        position = match.end()
        if not text.startswith(".", position):
            break
        position += 1
    return tuple(parts), position


def _skip_value(text: str, position: int) -> int:
    depth = 0
    while match := _VALUE_PIECE.match(text, position):
        piece = match[0]
        if piece == "\n" and depth == 0:
            break
        depth += (piece in "[{") - (piece in "]}") if len(piece) == 1 else 0
        position = match.end()
    return position
