"""What is known about functions, by the names that users write: which change by themselves, fold or multiply rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from lodestream.pipeline.gold.parsing import Parsed, call, calls, nodes
from lodestream.pipeline.gold.spark_functions import AGGREGATES, CHANGING, GENERATORS, KNOWN, TIME_WINDOWS

# Words that stand before a parenthesis without being a function.
_WORDS = frozenset(
    """
    all and anti any array as between by case cross cube date dec decimal distinct else end except exclude exists
    filter following from full group having in inner insert intersect interval into is join lateral left like limit
    map minus natural not numeric of on or order outer over partition pivot preceding qualify range recursive right
    rlike rollup rows select semi set sets some sort struct table tablesample then timestamp timestamp_ltz
    timestamp_ntz to union unpivot using values varchar view when where window with within
    """.split()  # noqa: SIM905 (a list would take a line a name)
)
_CHANGING_NODES = (
    exp.CurrentDate,
    exp.CurrentDatetime,
    exp.CurrentTime,
    exp.CurrentTimestamp,
    exp.CurrentUser,
    exp.SessionUser,
    exp.Localtimestamp,
    exp.Rand,
    exp.Randn,
    exp.Uuid,
)
# Spark reads these words as the clock wherever a text becomes a date or a timestamp, also without a CAST.
_CLOCK = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
_MOMENTS = ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "DATETIME", "TIME")
_NAMES_ITS_FIELDS = frozenset(["struct", "arrays_zip"])

WINDOW = "window"
SESSION_WINDOW = "session_window"


def changing(parsed: Parsed) -> str | None:
    """The first thing in a query whose value changes though its rows do not."""
    for text in _texts(parsed):
        if _CLOCK.match(text):
            return f"the text '{text}', which Spark may read as the clock,"
    for name, _ in calls(parsed.tokens):
        if name in CHANGING:
            return f"{name}()"
    words = [token.text.lower() for token in parsed.tokens]
    if any(words[n : n + 3] == ["unix_timestamp", "(", ")"] for n in range(len(words))):
        return "unix_timestamp() without a moment"
    return next((said for tree in parsed.trees for node in nodes(tree) if (said := _changing_node(node))), None)


def _texts(parsed: Parsed) -> Iterator[str]:
    """Every text of the query: literals, neighbours that are one text, and texts that constants are put together to."""
    joined = ""
    for token in parsed.tokens:
        if token.token_type in (TokenType.STRING, TokenType.RAW_STRING):
            joined += token.text
            yield token.text
            yield joined
        else:
            joined = ""
    for tree in parsed.trees:
        for node in tree.find_all(exp.Func, exp.DPipe):
            if node.find(exp.Column, exp.Query) is None:
                yield "".join(str(one.name) for one in node.find_all(exp.Literal) if one.is_string)


def _changing_node(node: exp.Expr) -> str | None:
    if isinstance(node, _CHANGING_NODES):
        return node.key.lower()
    to_moment = isinstance(node, exp.Cast) and node.to.this.name in _MOMENTS
    if to_moment and not isinstance(node.this, exp.Literal) and node.this.find(exp.Column, exp.Query) is None:
        return "a computed text, which Spark may read as the clock,"
    return "a computed text, which Spark may read as the clock," if _may_spell_the_clock(node) else None


def _may_spell_the_clock(node: exp.Expr) -> bool:
    """A constant that is computed and compared, of texts with the letters for it: `day = reverse('yadot')`."""
    if not isinstance(node, exp.Func) or not isinstance(node.parent, (exp.Predicate, exp.Paren)):
        return False
    if node.find(exp.Column, exp.Query) is not None:
        return False
    letters = Counter("".join(str(one.name) for one in node.find_all(exp.Literal) if one.is_string).lower())
    return any(Counter(word) <= letters for word in ("now", "today", "tomorrow", "yesterday"))


def unknown_function(parsed: Parsed) -> str | None:
    """The first function that may be anything: a user's own, or one this version has not heard of."""
    for name, plain in calls(parsed.tokens):
        if not (plain and name in KNOWN) and name not in _WORDS:
            return name
    return None


def renames_columns(parsed: Parsed, name: str) -> bool:
    """Whether the name with its parentheses is an alias, `VALUES (1) AS v(k)`, and no call."""
    tokens = parsed.tokens
    return any(
        token.text.lower() == name
        and following.token_type == TokenType.L_PAREN
        and before.token_type in (TokenType.ALIAS, TokenType.R_PAREN)
        for before, token, following in zip(tokens, tokens[1:], tokens[2:], strict=False)
    )


def names_its_fields(text_calls: set[str]) -> bool:
    """Such a function calls its fields by its arguments, so other arguments of equal value make another type."""
    return not _NAMES_ITS_FIELDS.isdisjoint(text_calls)


def called_in(tree: exp.Expr) -> set[str]:
    return {name for node in nodes(tree) if (name := call(node))}


def aggregate(node: exp.Expr) -> bool:
    """An aggregate call, with its FILTER when it has one; `agg(...) OVER (...)` is a window function."""
    if isinstance(node, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)):
        return aggregate(node.this)
    known = isinstance(node, exp.AggFunc) or _any_of_rows(node) or call(node) in AGGREGATES
    return known and not isinstance(node.parent, exp.Window)


def _any_of_rows(node: exp.Expr) -> bool:
    """`any(flag)`, not the `ANY` of `name LIKE ANY ('a%', 'b%')`, which asks one row."""
    return isinstance(node, exp.Any) and not isinstance(node.parent, (exp.Like, exp.ILike))


def has_aggregate(node: exp.Expr) -> bool:
    return any(aggregate(found) for found in node.walk(prune=lambda n: isinstance(n, (exp.Window, exp.Query))))


def session_window(node: exp.Expr) -> bool:
    return SESSION_WINDOW in called_in(node)


def generates(node: exp.Expr) -> bool:
    return not GENERATORS.isdisjoint(called_in(node))


def multiplies_rows(node: exp.Expr) -> bool:
    """True for generators and for windows: one row can fall into several hopping windows, or into none."""
    return generates(node) or not TIME_WINDOWS.isdisjoint(called_in(node))
