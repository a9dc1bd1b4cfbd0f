"""A query that the parser cannot read: a mistake that is one for certain, or something that only Spark can tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sqlglot.dialects import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lodestream.pipeline.gold.parsing import UnreadableError, parse
from lodestream.pipeline.query_problem import Problem
from lodestream.pipeline.sql import explain

_OPENING = {TokenType.R_PAREN: TokenType.L_PAREN, TokenType.R_BRACKET: TokenType.L_BRACKET}


def misread(text: str) -> Iterator[Problem]:
    """What is wrong with the grammar of a text; nothing for one that can be read."""
    tokens = _tokens(text)
    stray = _stray_comma(tokens)  # the parser passes over some
    if stray is not None:
        yield _certain(*stray)
        return
    try:
        parse(text)
    except UnreadableError as error:
        unpaired = _unpaired(tokens)
        if unpaired is not None:
            yield _certain(*unpaired)
            return
        line, why = explain(error)
        fix = f"look at line {line} of it; `lode plan --deep` asks Spark, and what Spark reads is recomputed as a whole"
        yield Problem("the SQL is not understood here, and may not be valid", why, fix, line, "warning")


def _certain(line: int, said: str) -> Problem:
    return Problem(f"the SQL has {said}", "Spark cannot read that", f"correct line {line} of it", line)


def _tokens(text: str) -> Sequence[Token]:
    if "\\" in text:
        return ()  # where a string ends depends on how Spark is configured to read backslashes
    try:
        return tuple(Spark().tokenize(text))
    except SqlglotError:
        return ()


def _stray_comma(tokens: Sequence[Token]) -> tuple[int, str] | None:
    comma, closing = TokenType.COMMA, (TokenType.R_PAREN, TokenType.R_BRACKET)
    for one, other in pairwise(tokens):
        kinds = (one.token_type, other.token_type)
        if kinds in ((comma, comma), (TokenType.SELECT, comma), (TokenType.L_PAREN, comma)):
            return other.line, f"nothing before the comma in `{_joined(one, other)}`"
        if kinds[0] == comma and kinds[1] in closing:
            return one.line, f"nothing after the comma in `{_joined(one, other)}`"
    for one, other, third, fourth in zip(tokens, tokens[1:], tokens[2:], (*tokens[3:], None), strict=False):
        named = third.token_type in (TokenType.VAR, TokenType.IDENTIFIER)  # else FROM may be the name of a column
        column = fourth is not None and fourth.token_type in (TokenType.FROM, comma)
        if (one.token_type, other.token_type) == (comma, TokenType.FROM) and named and not column:
            return one.line, f"nothing after the comma before {other.text}"
    return None


def _joined(one: Token, other: Token) -> str:
    return f"{one.text}{other.text}" if one.token_type != TokenType.SELECT else f"{one.text} {other.text}"


def _unpaired(tokens: Sequence[Token]) -> tuple[int, str] | None:
    opened: list[Token] = []
    for token in tokens:
        if token.token_type in _OPENING.values():
            opened.append(token)
            continue
        meant = _OPENING.get(token.token_type)
        if meant is not None and (not opened or opened.pop().token_type != meant):
            return token.line, f"a {token.text} that closes nothing"
    return (opened[-1].line, f"a {opened[-1].text} that is never closed") if opened else None
