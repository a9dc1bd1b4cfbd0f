"""What a Gold table's rows depend on besides its inputs' rows: when it changes, the stored rows are another table's.

It covers the query, the way it is kept, the columns it reads with their types, and the settings that answers depend on.
A column that the query never mentions may come or go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from sqlglot.dialects import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lodestream.pipeline.gold.plan import GoldPlan, InputInfo

# Spark settings that change answers; everything else about a session changes only how fast they come.
_SETTINGS = (
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.session.timeZone",
)
# Those that hardly anybody sets: they count once they are set.
_SELDOM_SET = (
    "spark.sql.ansi.",
    "spark.sql.charAsVarchar",
    "spark.sql.collation.",
    "spark.sql.csv.",
    "spark.sql.function.",
    "spark.sql.groupBy",
    "spark.sql.json.",
    "spark.sql.jsonGenerator.",
    "spark.sql.legacy.",
    "spark.sql.parser.",
    "spark.sql.readSideCharPadding",
    "spark.sql.timestampType",
    "spark.sql.variant.",
    "spark.sql.xml.",
)
_BEFORE_A_STAR = (TokenType.SELECT, TokenType.COMMA, TokenType.DOT, TokenType.DISTINCT, TokenType.ALL)
_TAKING_ALL = (TokenType.TABLE, TokenType.PIPE_GT, TokenType.PIVOT, TokenType.UNPIVOT)
# A column by any other identity is another one: dropped and added again, it has lost its values.
Identities = Mapping[str, Mapping[str, int]]


def definition(
    sql: str, plan: GoldPlan, infos: Sequence[InputInfo], settings: Mapping[str, str], ids: Identities
) -> str:
    parts = [plan.strategy, sql, plan.store_sql or plan.full_sql]
    found = read_columns(sql, infos)
    known = {
        f"{table}.{column.lower()}": number for table, numbers in ids.items() for column, number in numbers.items()
    }
    # A star takes the columns in the order that they stand in.
    ordered = list(found) if _takes_all(_tokens(sql)) else sorted(found)
    parts += [f"{name} {found[name]} #{known.get(name, '')}" for name in ordered]
    parts += [f"{key}={value}" for key, value in sorted(settings.items())]
    return fingerprint(parts)


def deciding(settings: Mapping[str, str | None]) -> dict[str, str]:
    """Of all settings of a session those that its answers depend on."""
    seldom = [key for key in settings if key.startswith(_SELDOM_SET)]
    return {key: settings.get(key) or "" for key in (*_SETTINGS, *seldom)}


def fingerprint(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def read_columns(sql: str, infos: Iterable[InputInfo]) -> dict[str, str]:
    """`table.column` and its type for every column that the text can read: by its name, by `*` or by NATURAL JOIN."""
    tokens = _tokens(sql)
    named = {token.text.lower() for token in tokens}
    everything = tokens == [] or "natural" in named or _takes_all(tokens)
    return {
        f"{info.name}.{column.lower()}": str(kind)
        for info in infos
        for column, kind in info.columns.items()
        if everything or column.lower() in named
    }


def _tokens(sql: str) -> list[Token]:
    """Without hints: they stand between SELECT and its star, and say nothing of rows."""
    try:
        return [token for token in Spark().tokenize(sql) if token.token_type != TokenType.HINT]
    except SqlglotError:
        return []


def _takes_all(tokens: list[Token]) -> bool:
    """Columns that no name asks for: by a star, by `TABLE t`, by `FROM t |> ...`, by what PIVOT groups by."""
    return _has_star(tokens) or any(token.token_type in _TAKING_ALL for token in tokens)


def _has_star(tokens: list[Token]) -> bool:
    """A star that stands for columns: not that of `count(*)`, nor the sign of a product."""
    for before, one, star in zip((None, *tokens), tokens, tokens[1:], strict=False):
        if star.token_type != TokenType.STAR:
            continue
        called = before.text.lower() if before is not None else ""
        if one.token_type in _BEFORE_A_STAR or (one.token_type == TokenType.L_PAREN and called != "count"):
            return True
    return False
