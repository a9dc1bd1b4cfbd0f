"""A query as a tree of small parts that writes itself twice: as a user would in Spark SQL, and as DuckDB reads it.

The Spark text has only the parentheses it needs, ordinals, aliases, bare names: what a planner can stumble over. The
DuckDB text spells all of that out and never goes through a parser of ours, so that it can judge. Being a tree, a query
can be shrunk: leave out a part, and look whether the failure is still there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["int", "dec", "dbl", "str", "bool", "date", "ts", "fuzzy"]
# How strongly an operator binds: an argument that binds less is put in parentheses.
OR, AND, NOT, COMPARE, ADD, MULTIPLY, UNARY, ATOM = range(8)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset(["all", "group", "order", "select", "from", "where", "having", "window", "end", "table"])


@dataclass(frozen=True, slots=True)
class Op:
    """A literal, operator or call: a text with holes, in Spark's words and, where they differ, in DuckDB's."""

    kind: Kind
    spark: str
    args: tuple[Expr | Query, ...] = ()
    level: int = ATOM
    holes: tuple[int, ...] = ()
    duck: str | None = None
    aggregate: bool = False
    window: bool = False

    def text(self, duck: bool) -> str:
        if duck:
            return "(" + (self.duck or self.spark).format(*[arg.text(True) for arg in self.args]) + ")"
        return self.spark.format(*[self._hole(place, arg) for place, arg in enumerate(self.args)])

    def _hole(self, place: int, arg: Expr | Query) -> str:
        needed = self.holes[place] if place < len(self.holes) else OR
        weak = isinstance(arg, Op) and arg.level < needed
        return f"({arg.text(False)})" if weak else arg.text(False)


@dataclass(frozen=True, slots=True)
class Col:
    """A column of a source; `bare` leaves the alias out, `spelled` is the name as this reader writes it."""

    kind: Kind
    name: str
    alias: str | None
    bare: bool = False
    spelled: str | None = None

    def text(self, duck: bool) -> str:
        name = named(self.name if duck else self.spelled or self.name, duck)
        return name if self.alias is None or (self.bare and not duck) else f"{self.alias}.{name}"


@dataclass(frozen=True, slots=True)
class AliasRef:
    """A column of the same SELECT list by its alias; DuckDB gets what it stands for."""

    kind: Kind
    name: str
    meaning: Expr

    def text(self, duck: bool) -> str:
        return self.meaning.text(True) if duck else named(self.name, False)


Expr: TypeAlias = Op | Col | AliasRef


@dataclass(frozen=True, slots=True)
class Item:
    expr: Expr
    alias: str

    def text(self, duck: bool) -> str:
        if isinstance(self.expr, Col) and self.expr.name == self.alias and not duck:
            return self.expr.text(False)
        return f"{self.expr.text(duck)} AS {named(self.alias, duck)}"


@dataclass(frozen=True, slots=True)
class Star:
    alias: str | None = None

    def text(self, duck: bool) -> str:
        return f"{self.alias}.*" if self.alias else "*"


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    alias: str | None

    def text(self, duck: bool) -> str:
        return f"{self.name} AS {self.alias}" if self.alias else self.name


@dataclass(frozen=True, slots=True)
class CteRef:
    name: str
    alias: str | None

    def text(self, duck: bool) -> str:
        return f"{self.name} {self.alias}" if self.alias else self.name


@dataclass(frozen=True, slots=True)
class Sub:
    query: Query
    alias: str | None

    def text(self, duck: bool) -> str:
        return f"({self.query.text(duck)})" + (f" {self.alias}" if self.alias else "")


Source: TypeAlias = Table | CteRef | Sub


@dataclass(frozen=True, slots=True)
class Join:
    kind: str
    source: Source
    on: Expr | None = None
    using: str | None = None

    def text(self, duck: bool) -> str:
        kind = self.kind.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI") if duck else self.kind
        if self.using:
            return f"{kind} {self.source.text(duck)} USING ({named(self.using, duck)})"
        return f"{kind} {self.source.text(duck)}" + (f" ON {self.on.text(duck)}" if self.on else "")


@dataclass(frozen=True, slots=True)
class Key:
    """A group key; `style` says how the user refers to it: by expression, by ordinal or by alias."""

    expr: Expr
    style: Literal["expr", "ordinal", "alias"] = "expr"

    def text(self, duck: bool, items: tuple[Item | Star, ...] = ()) -> str:
        for number, item in enumerate(items, 1):
            if self.style != "expr" and not duck and isinstance(item, Item) and item.expr == self.expr:
                return str(number) if self.style == "ordinal" else named(item.alias, False)
        return self.expr.text(duck)


@dataclass(frozen=True, slots=True)
class Select:
    items: tuple[Item | Star, ...]
    source: Source
    joins: tuple[Join, ...] = ()
    where: Expr | None = None
    keys: tuple[Key, ...] = ()
    group_all: bool = False
    having: Expr | None = None
    distinct: bool = False
    qualify: Expr | None = None

    def text(self, duck: bool) -> str:
        parts = ["SELECT DISTINCT" if self.distinct else "SELECT", ", ".join(item.text(duck) for item in self.items)]
        parts += ["FROM", self.source.text(duck), *(join.text(duck) for join in self.joins)]
        if self.where:
            parts += ["WHERE", self.where.text(duck)]
        if self.keys:
            shown = {item.expr for item in self.items if isinstance(item, Item)}
            whole = self.group_all and not duck and shown.issuperset(key.expr for key in self.keys)
            parts += ["GROUP BY", "ALL" if whole else ", ".join(key.text(duck, self.items) for key in self.keys)]
        if self.having:
            parts += ["HAVING", self.having.text(duck)]
        if self.qualify:
            parts += ["QUALIFY", self.qualify.text(duck)]
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Union:
    left: Select | Union
    right: Select | Union
    kind: str = "UNION ALL"

    def text(self, duck: bool) -> str:
        return f"{self.left.text(duck)} {self.kind} {self.right.text(duck)}"


@dataclass(frozen=True, slots=True)
class Cte:
    name: str
    query: Query

    def text(self, duck: bool) -> str:
        return f"{self.name} AS ({self.query.text(duck)})"


@dataclass(frozen=True, slots=True)
class Query:
    body: Select | Union
    ctes: tuple[Cte, ...] = ()
    tail: str = ""  # ORDER BY, LIMIT, a comment

    def text(self, duck: bool) -> str:
        with_ = f"WITH {', '.join(cte.text(duck) for cte in self.ctes)} " if self.ctes else ""
        return f"{with_}{self.body.text(duck)}{self.tail}"

    @property
    def sql(self) -> str:
        return self.text(duck=False)


def named(name: str, duck: bool) -> str:
    """A name as it must be written: with quotes when it is no plain word."""
    if _PLAIN.fullmatch(name) and name.lower() not in _RESERVED:
        return name
    return '"' + name + '"' if duck else f"`{name}`"
