"""The user's SQL, parsed for reading only: every node knows which characters of the text it stands for.

What reaches Spark is cut from that text. A tree is never rendered again: no renderer knows all of Spark's SQL, and one
that changes a function's name, a field's case or a quote changes the answer without a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, wraps
from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from lodestream.pipeline.gold.plan import NotProvableError

# sqlglot takes `window` for the WINDOW clause. The stand-in is as long, so positions in the text stay true.
_WINDOW, _STAND_IN = "window", "w_ndow"
_BLANKS = " \t\r\n"  # of which alone both say that they are blanks
_TO_LINE_END = re.compile(r"[^\r\n]*")
_SPAN, _CALL = "lode_span", "lode_call"
_DIALECT = Spark()
Span = tuple[int, int]


class UnreadableError(Exception):
    """The parser cannot read the text; Spark may."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """`text` is what the user wrote; `plain` has blanks for comments, hints and `;`: its pieces can be joined."""

    text: str
    plain: str
    trees: tuple[exp.Expr, ...]
    tokens: tuple[Token, ...]


@lru_cache(maxsize=256)  # one plan asks for the same text many times; nobody changes a tree that was read
def parse(text: str) -> Parsed:
    trees, tokens, read = _trees(text, _SpanParser)
    for tree in trees:
        _finish(tree, read)
    return Parsed(text, _without_comments(text, tokens), tuple(trees), tuple(tokens))


def parse_expression(text: str) -> exp.Expr | None:
    """What the text of one expression means by itself; its nodes do not know their places."""
    try:
        trees, _, _ = _trees(f"SELECT {text}", SparkParser)
    except UnreadableError:
        return None
    found = trees[0].expressions
    if len(found) != 1:
        return None
    for node in found[0].walk() if _STAND_IN in text or _WINDOW in text.lower() else ():
        _name_window(node)
    answer: exp.Expr = found[0]
    return answer


def _trees(text: str, parser: type[SparkParser]) -> tuple[list[exp.Expr], list[Token], list[Token]]:
    """The statements, the tokens of the text, and the tokens that the parser got."""
    try:
        tokens = _DIALECT.tokenize(text)
        _refuse_other_gaps(text, tokens)
        shown = _with_stand_ins(text, tokens)
        read = _DIALECT.tokenize(shown) if shown != text else tokens
        found = parser(dialect=_DIALECT).parse(read, shown)
        # A comment behind the last `;` comes as a statement of its own.
        trees = [tree for tree in found if tree is not None and not isinstance(tree, exp.Semicolon)]
    except (SqlglotError, RecursionError, ValueError, AttributeError, TypeError, KeyError, IndexError) as error:
        raise UnreadableError(str(error).splitlines()[0] if str(error) else type(error).__name__) from error
    return trees, tokens, read


def _refuse_other_gaps(text: str, tokens: list[Token]) -> None:
    """What stands between two tokens must be nothing to Spark as well: the two read comments differently."""
    ends = [0, *(token.end + 1 for token in tokens)]
    starts = [*(token.start for token in tokens), len(text)]
    for end, start in zip(ends, starts, strict=True):
        if start > end and not _is_nothing(text[end:start]):
            raise UnreadableError(f"Spark may read this otherwise: {text[end:start].strip()[:60]!r}")


def _is_nothing(gap: str) -> bool:
    """Whether Spark skips it, and no more than it. A line comment that ends in a backslash goes on in the next line."""
    at = depth = 0
    while at < len(gap):
        two = gap[at : at + 2]
        if gap.startswith("/*+", at):  # a hint, wherever it stands
            return False
        if two == "/*":
            depth, at = depth + 1, at + 2
        elif two == "*/" and depth:
            depth, at = depth - 1, at + 2
        elif depth or gap[at] in _BLANKS:
            at += 1
        elif two == "--":
            line = _TO_LINE_END.match(gap, at)
            if line is None or line[0].endswith("\\"):
                return False
            at = line.end()
        else:
            return False
    return depth == 0


def nodes(tree: exp.Expr) -> list[exp.Expr]:
    """Every node of a tree, in the order of its own `walk()`, which takes three times as long to tell them."""
    found = [tree]
    for node in found:
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                found.append(value)
            elif isinstance(value, list):
                found += [one for one in value if isinstance(one, exp.Expr)]
    return found


def span(node: exp.Expr) -> Span:
    """Where the node stands in the text."""
    found: Span | None = node.meta.get(_SPAN)
    if found is None:
        raise NotProvableError(f"{node.key.upper()} cannot be told apart from its neighbours in the text")
    return found


def call(node: exp.Expr) -> str | None:
    """The name that a function is called by, as the user wrote it, in lower case."""
    found: str | None = node.meta.get(_CALL)
    return found


def calls(tokens: tuple[Token, ...]) -> Iterator[tuple[str, bool]]:
    """Every name before an opening parenthesis, and whether it is a plain one: `a.b(` and quoted names are not."""
    for before, token, following in zip((None, *tokens), tokens, tokens[1:], strict=False):
        if following.token_type == TokenType.L_PAREN and token.text[:1].isidentifier():
            qualified = before is not None and before.token_type == TokenType.DOT
            yield token.text.lower(), not qualified and token.token_type != TokenType.IDENTIFIER


class _SpanParser(SparkParser):
    """Notes for each node the tokens it was made of; `starts` are where the methods under way began."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.starts: list[int] = []


def _noting(method: Callable[..., Any]) -> Callable[..., Any]:
    closes_a_call = method.__name__ == "_parse_window"

    @wraps(method)
    def parse_and_note(self: Any, *given: Any, **named: Any) -> Any:
        start, starts = self._index, self.starts
        if closes_a_call and given and isinstance(given[0], exp.Expr) and starts:
            # A call is handed on before anything returned it, its name and closing parenthesis read.
            tokens = self._tokens
            begins = [tokens[starts[-1]].start, *(found[0] for found in [_noted(given[0])] if found)]
            given[0].meta[_SPAN] = (min(begins), tokens[start - 1].end + 1)
        starts.append(start)
        try:
            node = method(self, *given, **named)
        finally:
            starts.pop()
        # Asked for every rule of the grammar: most of them read nothing, or hand on what another one noted.
        if node is not None and self._index > start and isinstance(node, exp.Expr) and _SPAN not in node.meta:
            tokens = self._tokens
            begins = [tokens[start].start, *(found[0] for child in node.iter_expressions() if (found := _noted(child)))]
            node.meta[_SPAN] = (min(begins), tokens[self._index - 1].end + 1)
        return node

    return parse_and_note


for _name in dir(SparkParser):
    if _name.startswith("_parse_") and callable(getattr(SparkParser, _name)):
        setattr(_SpanParser, _name, _noting(getattr(SparkParser, _name)))


def _noted(node: exp.Expr) -> Span | None:
    """The node's own span, or what its parts cover: `a + b` in `a + b + c` is made in passing."""
    found: Span | None = node.meta.get(_SPAN)
    if found is not None:
        return found
    parts = [part for child in node.iter_expressions() if (part := _noted(child))]
    return (min(p[0] for p in parts), max(p[1] for p in parts)) if parts else None


def _finish(tree: exp.Expr, tokens: list[Token]) -> None:
    starts = {token.start: index for index, token in enumerate(tokens)}
    every = nodes(tree)
    for node in every:
        node.comments = None
        if _SPAN not in node.meta and (found := _noted(node)):
            node.meta[_SPAN] = found
        _name_window(node)
    closing = _closing(tokens)
    for node in every:
        if not isinstance(node, exp.Func):
            continue
        first, last = node.meta.get(_SPAN, (-1, 0))
        place = starts.get(first)
        # `sum(a) > 1` begins like a call, too, but a call ends where its parenthesis closes.
        if place is not None and closing.get(place + 1) == last:
            name = tokens[place].text.lower()
            node.meta[_CALL] = _WINDOW if name == _STAND_IN else name


def _name_window(node: exp.Expr) -> None:
    if isinstance(node, (exp.Identifier, exp.Anonymous)) and node.this == _STAND_IN:
        node.set("this", _WINDOW)


def _closing(tokens: list[Token]) -> dict[int, int]:
    """Where the text of each opening parenthesis ends."""
    found, opened = {}, []
    for index, token in enumerate(tokens):
        if token.token_type == TokenType.L_PAREN:
            opened.append(index)
        elif token.token_type == TokenType.R_PAREN and opened:
            found[opened.pop()] = token.end + 1
    return found


def _with_stand_ins(text: str, tokens: list[Token]) -> str:
    """`window` is a name unless it opens the clause `WINDOW w AS (...)`."""
    pairs = [*pairwise(tokens), *((token, None) for token in tokens[-1:])]
    for number, (token, following) in enumerate(pairs):
        if token.token_type != TokenType.WINDOW:
            continue
        after = tokens[number + 2] if number + 2 < len(tokens) else None
        clause = following is not None and following.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
        if not (clause and after is not None and after.token_type == TokenType.ALIAS):
            text = text[: token.start] + _STAND_IN + text[token.end + 1 :]
    return text


def _without_comments(text: str, tokens: list[Token]) -> str:
    """Hints are comments too: they say how to run the user's own statement, and the ones made from it are others."""
    kept = [" "] * len(text)
    hint = False
    for token in tokens:
        hint = hint or token.token_type == TokenType.HINT
        if not hint and token.token_type != TokenType.SEMICOLON:
            kept[token.start : token.end + 1] = text[token.start : token.end + 1]
        elif token.text.endswith("*/"):
            hint = False
    return "".join(kept)
