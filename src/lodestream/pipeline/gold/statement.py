"""The user's SQL as written: its inputs found, its tables replaced by views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lodestream.errors import DeclarationError
from lodestream.pipeline.gold.edits import Edit, edited, reading
from lodestream.pipeline.gold.parsing import Parsed, UnreadableError, parse
from lodestream.pipeline.gold.pieces import quoted
from lodestream.pipeline.gold.plan import InputInfo, now_view
from lodestream.pipeline.gold.tables import base_tables, table_name

_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_COMPUTED = "identifier"
_TIERS = ("bronze", "silver", "gold")
_BEFORE_A_TABLE = (TokenType.FROM, TokenType.JOIN, TokenType.COMMA, TokenType.L_PAREN, TokenType.TABLE)


@dataclass(frozen=True, slots=True)
class Statement:
    """`full_sql` is the user's own text, character by character, except that it reads the `now` views.

    `tree` is None when only Spark can read the text; `unread` then says what stopped the parser.
    """

    parsed: Parsed | None
    inputs: tuple[str, ...]
    infos: Mapping[str, InputInfo]
    full_sql: str
    unread: str = ""

    @property
    def tree(self) -> exp.Query | None:
        return self.parsed.trees[0] if self.parsed else None  # type: ignore[return-value]

    @property
    def streams(self) -> tuple[str, ...]:
        """The inputs whose changes drive the table: all but the lookups, or all when there are only lookups."""
        found = tuple(name for name in self.inputs if not self.infos[name].lookup)
        return found or self.inputs


def read_statement(sql: str, inputs: Mapping[str, InputInfo]) -> Statement:
    try:
        parsed = _one_query(parse(sql))
    except UnreadableError as error:
        return _unread(sql, inputs, str(error))
    tree = parsed.trees[0]
    known = {name.lower(): name for name in inputs}
    names: dict[str, None] = {}
    for table in base_tables(tree):
        name = known.get(table_name(table).lower())
        if name is None:
            raise _not_an_input(table_name(table), inputs)
        _refuse_moments(table)
        names[name] = None
    for sample in tree.find_all(exp.TableSample):
        read = sample.parent
        raise _sampled(table_name(read) if isinstance(read, exp.Table) else "a subquery")
    _refuse_namesakes(tree)
    infos = {name: inputs[name] for name in names}
    return Statement(parsed, tuple(names), infos, edited(sql, reading(tree, {}, naming=False)))


def query_inputs(sql: str) -> tuple[str, ...]:
    """The tables a query reads, as `tier.name`, in the order of their first mention."""
    try:
        parsed = _one_query(parse(sql))
    except UnreadableError:
        if _is_computed(sql):
            raise _computed() from None
        return tuple(dict.fromkeys(name for name, _ in mentions(sql)))
    return tuple(dict.fromkeys(table_name(table) for table in base_tables(parsed.trees[0])))


def _one_query(parsed: Parsed) -> Parsed:
    if len(parsed.trees) != 1 or not isinstance(parsed.trees[0], exp.Query):
        found = ", ".join(tree.key.upper() for tree in parsed.trees) or "nothing"
        raise DeclarationError(
            "a Gold file must hold exactly one SELECT",
            why=f"it holds {len(parsed.trees)} statement(s): {found}",
            fix="keep the one query that gives the table's rows; Lodestream writes them",
        )
    if any(isinstance(one.this, exp.Anonymous) and one.this.name.lower() == _COMPUTED for one in _all_tables(parsed)):
        raise _computed()
    return parsed


def _all_tables(parsed: Parsed) -> Iterator[exp.Table]:
    return parsed.trees[0].find_all(exp.Table)


def _computed() -> DeclarationError:
    return DeclarationError(
        "a query names a table by IDENTIFIER(...)",
        why="which tables feed it must be known before it runs, and this name is computed",
        fix="write the name itself: FROM silver.trips",
    )


def _is_computed(sql: str) -> bool:
    """IDENTIFIER(...) where a table stands."""
    tokens = _tokens(sql)
    return any(
        before.token_type in (TokenType.FROM, TokenType.JOIN)
        and name.text.lower() == _COMPUTED
        and after.token_type == TokenType.L_PAREN
        for before, name, after in zip(tokens, tokens[1:], tokens[2:], strict=False)
    )


def _unread(sql: str, inputs: Mapping[str, InputInfo], why: str) -> Statement:
    known = {name.lower(): name for name in inputs}
    names: dict[str, None] = {}
    edits: list[Edit] = []
    if _samples(sql):
        raise _sampled("its input")
    if _is_computed(sql):
        raise _computed()
    for mentioned, (first, last, alias) in mentions(sql):
        name = known.get(mentioned)
        if name is None:
            raise _not_an_input(mentioned, inputs)
        names[name] = None
        edits.append((first, last, now_view(name) + alias))
    if not names:
        raise DeclarationError("a Gold query cannot be parsed", why=why, fix="let Spark read it: lode plan --deep")
    return Statement(None, tuple(names), {name: inputs[name] for name in names}, edited(sql, edits), why)


def _samples(sql: str) -> bool:
    """TABLESAMPLE with its parentheses; a column may have that name."""
    types = [token.token_type for token in _tokens(sql)]
    return (TokenType.TABLE_SAMPLE, TokenType.L_PAREN) in pairwise(types)


def mentions(sql: str) -> list[tuple[str, Edit]]:
    """Tables by their names alone, for a text that only Spark can read: `tier.name` after FROM, JOIN or a comma."""
    tokens = _tokens(sql)
    found: list[tuple[str, Edit]] = []
    for number, token in enumerate(tokens[:-2]):
        dotted = tokens[number + 1].token_type == TokenType.DOT and tokens[number + 2].token_type in _NAMES
        if token.text.lower() not in _TIERS or token.token_type not in _NAMES or not dotted:
            continue
        place = number - 2 if number > 1 and _dotted(tokens[number - 2 : number]) else number  # the catalog before it
        before = tokens[place - 1] if place else None
        after = tokens[number + 3] if number + 3 < len(tokens) else None
        if after is not None and after.token_type in (TokenType.DOT, TokenType.L_PAREN):
            continue  # a column of the table, or a function
        if before is not None and before.token_type not in _BEFORE_A_TABLE:
            continue
        named = after is not None and after.token_type in (*_NAMES, TokenType.ALIAS)
        name = tokens[number + 2]
        whole = before is not None and before.token_type == TokenType.TABLE  # `TABLE t` takes no other name
        alias = "" if named or whole else f" AS {quoted(name.text)}"
        found.append((f"{token.text}.{name.text}".lower(), (tokens[place].start, name.end + 1, alias)))
    return found


def _tokens(sql: str) -> list[Token]:
    try:
        return list(Spark().tokenize(sql))
    except SqlglotError:
        return []


def _dotted(tokens: Sequence[Token]) -> bool:
    return tokens[0].token_type in _NAMES and tokens[1].token_type == TokenType.DOT


def refuse_catalogs(sql: str, catalog: str) -> None:
    """Raise when the query names a table of another catalog: the inputs of a pipeline are tables of its own."""
    try:
        tables = [[str(part.name) for part in table.parts] for tree in parse(sql).trees for table in base_tables(tree)]
    except UnreadableError:
        texts = [sql[first:last] for _, (first, last, _) in mentions(sql)]
        tables = [[one.text for one in Spark().tokenize(text) if one.token_type in _NAMES] for text in texts]
    for parts in tables:
        if len(parts) > 2 and [part.lower() for part in parts[:-2]] != [catalog.lower()]:
            raise DeclarationError(
                f"a Gold query reads {'.'.join(parts)}, a table of another catalog",
                why=f"a Gold table follows tables of its own catalog, {catalog}; of others no change is known",
                fix=f"bring its rows in by a Bronze or reference table, or write {'.'.join(parts[-2:])} for ours",
            )


def _not_an_input(name: str, inputs: Mapping[str, InputInfo]) -> DeclarationError:
    return DeclarationError(
        f"a Gold query reads {name}, which is not one of its inputs",
        why=f"the inputs are {', '.join(inputs) or 'none'}",
        fix="write the table as tier.name, as it is declared in the pipeline",
    )


def _refuse_namesakes(tree: exp.Expr) -> None:
    """Two tiers may have a table of one name; a view goes by the short one."""
    for select in tree.find_all(exp.Select):
        places = [select.args.get("from_"), *(select.args.get("joins") or [])]
        read = [one.this for one in places if one is not None and isinstance(one.this, exp.Table)]
        short = [str(table.name).lower() for table in read if not table.alias]
        twice = next((name for name in short if short.count(name) > 1), None)
        if twice is not None:
            raise DeclarationError(
                f"a Gold query reads two tables called {twice} without another name for either",
                why="inside the query both would be known as " + twice,
                fix=f"give them aliases: FROM silver.{twice} AS s JOIN gold.{twice} AS g",
            )


def _refuse_moments(table: exp.Table) -> None:
    if table.args.get("version") or table.args.get("when"):
        raise DeclarationError(
            f"a Gold query reads {table_name(table)} as it was",
            why="a Gold table says which snapshot of each input it contains, and follows them as they go on",
            fix="drop VERSION AS OF or TIMESTAMP AS OF; for the past, read the table itself at an earlier snapshot",
        )


def _sampled(read: str) -> DeclarationError:
    return DeclarationError(
        f"a Gold query reads a sample of {read}",
        why="Gold equals a recompute over its inputs, and a sample has other rows each time",
        fix="choose rows by what they hold: WHERE pmod(xxhash64(a_key), 10) = 0 for a tenth",
    )
