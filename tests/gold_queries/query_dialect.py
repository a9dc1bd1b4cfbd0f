"""Spark SQL for DuckDB, token by token: nothing is parsed and rendered again, so a piece reaches the judge as it is.

Only what the generator and the planner write is known here. What cannot be said to DuckDB raises `Untranslatable`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?\*/)
    |(?P<space>\s+)
    |(?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    |(?P<name>`(?:[^`]|``)*`)
    |(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<sign><=>|<>|!=|<=|>=|==|\|\||.)""",
    re.VERBOSE | re.DOTALL,
)
_NEVER = frozenset(["lateral", "pivot", "tablesample"])
_WORDS = {"timestamp_ntz": "TIMESTAMP", "string": "VARCHAR", "div": "//"}
_CALLS = {
    "array": "list_value",
    "every": "bool_and",
    "explode": "unnest",
    "ifnull": "coalesce",
    "mean": "avg",
    "nvl": "coalesce",
    "raise_error": "error",
    "sequence": "generate_series",
    "some": "bool_or",
    "any": "bool_or",
    "std": "stddev",
    "try_avg": "avg",
    "try_sum": "sum",
    "date_add": "lode_date_add",
}
_COMPARE = frozenset(["=", "<", ">", "<=>", "<>", "!=", "<=", ">=", "==", "is", "in", "like", "between"])
MACROS = ("CREATE MACRO lode_date_add(d, n) AS CAST(CAST(d AS DATE) + n AS DATE)",)


class Untranslatable(Exception):
    """DuckDB has no word for it, or Spark would not read it."""


Token = tuple[str, str]


@lru_cache(maxsize=4096)
def duck(sql: str) -> str:
    tokens: list[Token] = [(str(m.lastgroup), m.group()) for m in TOKEN.finditer(sql)]
    tokens = [token for token in tokens if token[0] not in ("comment", "space")]
    _refuse_what_spark_cannot_read(tokens)
    text, end = _written(tokens, 0)
    if end != len(tokens):
        raise Untranslatable(f"a parenthesis too many: {sql}")
    return text


def _refuse_what_spark_cannot_read(tokens: list[Token]) -> None:
    """DuckDB reads `x IS NULL = y`; Spark's grammar ends there."""
    for place in range(len(tokens) - 1):
        before = tokens[place - 1][1].lower() if place else ""
        if tokens[place][1].lower() == "null" and before in ("is", "not") and _goes_on(tokens[place + 1]):
            raise Untranslatable("Spark cannot parse IS NULL before " + tokens[place + 1][1])


def _goes_on(token: Token) -> bool:
    return token[1].lower() in _COMPARE


def _written(tokens: list[Token], start: int) -> tuple[str, int]:
    """The text up to the end or to the parenthesis that closes this level."""
    out: list[str] = []
    place = start
    while place < len(tokens):
        kind, text = tokens[place]
        if text == ")":
            return " ".join(out), place
        word = text.lower() if kind == "word" else ""
        follows = tokens[place + 1][1] if place + 1 < len(tokens) else ""
        if word in _NEVER:
            raise Untranslatable(word)
        if word and follows == "(" and word in _SPECIAL:
            arguments, place = _arguments(tokens, place + 2)
            out.append(_SPECIAL[word](arguments))
        elif text == "(":
            inside, place = _written(tokens, place + 1)
            out.append(f"({inside})")
        elif word and follows == "(" and word in _CALLS and not (out and out[-1] == "."):
            out.append(_CALLS[word])
        elif word == "left" and follows.lower() in ("semi", "anti"):
            pass
        elif word in _WORDS:
            out.append(_WORDS[word])
        else:
            out.append(_plain(kind, text))
        place += 1
    return " ".join(out), place


def _plain(kind: str, text: str) -> str:
    if kind == "string":
        return "'" + unquoted(text).replace("'", "''") + "'"
    if kind == "name":
        return '"' + text[1:-1].replace("``", "`").replace('"', '""') + '"'
    return {"<=>": "IS NOT DISTINCT FROM", "==": "="}.get(text, text)


def unquoted(text: str) -> str:
    """What a string literal of Spark 4 says: a doubled quote is one, a backslash escapes."""
    mark = text[0]
    inner = text[1:-1].replace(mark * 2, mark)
    return re.sub(r"\\(.)", r"\1", inner)


def _arguments(tokens: list[Token], start: int) -> tuple[list[str], int]:
    """The arguments of a call, each translated, and the place of its closing parenthesis."""
    depth, place = 0, start
    pieces: list[list[Token]] = [[]]
    while place < len(tokens):
        text = tokens[place][1]
        if text == ")" and depth == 0:
            return [_written(piece, 0)[0] for piece in pieces if piece], place
        depth += (text == "(") - (text == ")")
        if text == "," and depth == 0:
            pieces.append([])
        else:
            pieces[-1].append(tokens[place])
        place += 1
    raise Untranslatable("a parenthesis too few")


def _named_struct(arguments: list[str]) -> str:
    pairs = zip(arguments[::2], arguments[1::2], strict=True)
    return "{" + ", ".join(f"{name}: {value}" for name, value in pairs) + "}"


def _to_json(arguments: list[str]) -> str:
    """To DuckDB two structs of the same value are one expression, whatever their field is called: it has to be told the
    name as a value."""
    named = re.fullmatch(r"\{('\w+'): (.*)\}", arguments[0], re.DOTALL)
    made = f"json_object({named[1]}, {named[2]})" if named else f"to_json({arguments[0]})"
    return f"CAST({made} AS VARCHAR)"


def _struct(arguments: list[str]) -> str:
    pairs = []
    for number, argument in enumerate(arguments, 1):
        value, _, name = argument.rpartition(" AS ")
        named = name if value else argument.rpartition(".")[2].strip()
        pairs.append(f"'{named if re.fullmatch(chr(92) + 'w+', named) else f'col{number}'}': {value or argument}")
    return "{" + ", ".join(pairs) + "}"


_SPECIAL: dict[str, Callable[[list[str]], str]] = {
    "concat": lambda arguments: f"({' || '.join(arguments)})",
    "count_if": lambda arguments: f"count(CASE WHEN {arguments[0]} THEN 1 END)",
    "log": lambda arguments: (
        f"ln({arguments[0]})" if len(arguments) == 1 else f"(ln({arguments[1]}) / ln({arguments[0]}))"
    ),
    "named_struct": _named_struct,
    "struct": _struct,
    "to_json": _to_json,
    "stack": lambda arguments: f"unnest(list_value({', '.join(arguments[1:])}))",
}
