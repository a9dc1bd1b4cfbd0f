"""Random queries that are valid Spark SQL over the tables of `query_tables`. The same seed gives the same query."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from query_expressions import Expressions, cols
from query_model import (
    ADD,
    AND,
    COMPARE,
    OR,
    AliasRef,
    Col,
    Cte,
    CteRef,
    Expr,
    Item,
    Join,
    Key,
    Kind,
    Op,
    Query,
    Select,
    Source,
    Star,
    Sub,
    Table,
    Union,
)
from query_tables import INFOS, kind_of

ALIASES = ("a", "b", "c", "q", "t", "v")
CTES = ("kept", "trips", "q", "per_zone", "T")
NAMES = (
    "n",
    "s",
    "k",
    "m",
    "x",
    "Total",
    "Zone_Id",
    "zone",
    "cat",
    "qty",
    "lo",
    "Flagged",
    "g",
    "my col",
    "fare",
    "Id",
)
JOINS = (
    *("JOIN", "JOIN", "JOIN", "INNER JOIN", "LEFT JOIN", "LEFT JOIN", "LEFT JOIN"),
    *("RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"),
)
KINDS: tuple[Kind, ...] = ("int", "int", "int", "dec", "str", "str", "bool", "dbl", "date", "ts")


@dataclass(frozen=True)
class Binding:
    """A source as the columns that can be read from it. `alias` is None for a subquery without a name."""

    alias: str | None
    columns: tuple[tuple[str, Kind], ...]
    unique: str | None = None  # a column that is different in every row
    hidden: bool = False  # below a semi or anti join: only its own condition may read it


@dataclass(frozen=True)
class Scope:
    bindings: tuple[Binding, ...]
    outer: tuple[Binding, ...] = ()
    merged: tuple[str, ...] = ()  # columns of a USING

    @property
    def names(self) -> list[str]:
        return [name.lower() for binding in self.bindings for name, _ in binding.columns]

    def columns(self, chance: random.Random, only: Iterable[Binding] | None = None) -> list[Col]:
        found = []
        seen = self.names
        for binding in self.bindings if only is None else only:
            for name, kind in binding.columns:
                single = seen.count(name.lower()) == 1
                if binding.alias is None and not single:
                    continue
                bare = single and chance.random() < 0.5
                if not single and name in self.merged and len(self.bindings) == 2 and chance.random() < 0.5:
                    found.append(Col(kind, name, None))
                spelled = name.swapcase() if chance.random() < 0.04 else None
                found.append(Col(kind, name, binding.alias, bare, spelled))
        return found


@dataclass
class Generator:
    chance: random.Random
    tables: tuple[str, ...] = tuple(INFOS)
    make: Expressions = field(init=False)
    ctes: list[tuple[str, tuple[tuple[str, Kind], ...]]] = field(default_factory=list)
    closed: set[str] = field(default_factory=set)  # a CTE cannot read itself

    def __post_init__(self) -> None:
        self.make = Expressions(self.chance)

    def query(self) -> Query:
        few = self.chance.choice((1, 1, 2, 2, 3))
        self.tables = tuple(self.chance.sample(self.tables, few))
        found, outputs = self.whole(self.chance.choice((0, 0, 0, 1, 1, 1, 1, 2)), ())
        return replace(found, tail=self._tail(outputs))

    def _tail(self, outputs: Sequence[tuple[str, Kind]]) -> str:
        dice = self.chance.random()
        if dice < 0.03:
            return f" ORDER BY {self.chance.randint(1, len(outputs))}"
        if dice < 0.045:
            numbers = ", ".join(str(number) for number in range(1, len(outputs) + 1))
            fuzzy = any(kind in ("fuzzy", "dbl") for _, kind in outputs)
            return "" if fuzzy else f" ORDER BY {numbers} LIMIT {self.chance.randint(1, 3)}"
        return self.chance.choice((" -- it's done", " /* that's `all` */")) if dice < 0.08 else ""

    def whole(self, depth: int, outer: tuple[Binding, ...]) -> tuple[Query, tuple[tuple[str, Kind], ...]]:
        """A query with its common table expressions, and its columns."""
        mark, ctes = len(self.ctes), []
        if depth > 0 and self._often(0.3):
            for _ in range(self.chance.choice((1, 1, 2))):
                name = self.chance.choice(CTES)
                if name.lower() in {cte.name.lower() for cte in ctes} | self.closed:
                    continue
                self.closed.add(name.lower())
                inner, columns = self.whole(depth - 1, ())
                self.closed.discard(name.lower())
                ctes.append(Cte(name, inner))
                self.ctes.append((name, columns))
        body, columns = self.body(depth, outer)
        if ctes and not any(cte.name.lower() in body.text(False).lower() for cte in ctes):
            ctes = []
        del self.ctes[mark:]
        return Query(body, tuple(ctes)), columns

    def body(self, depth: int, outer: tuple[Binding, ...]) -> tuple[Select | Union, tuple[tuple[str, Kind], ...]]:
        select, columns = self.select(depth, outer)
        stars = any(isinstance(item, Star) for item in select.items)
        if outer or stars or not self._often(0.1 if depth else 0.05) or any(kind == "fuzzy" for _, kind in columns):
            return select, columns
        other = self.select_of([kind for _, kind in columns])
        kind = self.chance.choice(("UNION ALL", "UNION ALL", "UNION ALL", "UNION", "UNION", "EXCEPT", "INTERSECT"))
        return Union(select, other, kind), columns

    # one SELECT

    def select(self, depth: int, outer: tuple[Binding, ...]) -> tuple[Select, tuple[tuple[str, Kind], ...]]:
        source, joins, scope = self.sources(depth, outer)
        where = self.filter(scope, depth) if self._often(0.5) else None
        dice = self.chance.random()
        if not any(column.kind != "fuzzy" for column in scope.columns(self.chance)):
            rows = Item(Op("int", "count(*)", aggregate=True), self._names(1)[0])
            return Select((rows,), source, joins), _outputs([rows])
        if dice < 0.42:
            return self.grouped(source, joins, where, scope)
        if dice < 0.52:
            return self.total(source, joins, where, scope)
        return self.rows(source, joins, where, scope, depth)

    def select_of(self, kinds: Sequence[Kind]) -> Select:
        """The second branch of a UNION: the same kinds of columns, under other names."""
        source, joins, scope = self.sources(0, ())
        columns = scope.columns(self.chance)
        names = self._names(len(kinds))
        items = [Item(self._exact(columns, kind), name) for kind, name in zip(kinds, names, strict=True)]
        where = self.make.boolean(columns, 1) if self._often(0.4) else None
        return Select(tuple(items), source, joins, where)

    def _exact(self, columns: list[Col], kind: Kind) -> Expr:
        fitting = [column for column in columns if column.kind == kind]
        return self.chance.choice(fitting) if fitting else self.make.literal(kind)

    def rows(
        self, source: Source, joins: tuple[Join, ...], where: Expr | None, scope: Scope, depth: int
    ) -> tuple[Select, tuple[tuple[str, Kind], ...]]:
        columns = scope.columns(self.chance)
        visible = tuple(binding for binding in scope.bindings if not binding.hidden)
        if self._often(0.08) and len(visible) == 1 and not scope.merged:
            star = Star(visible[0].alias if joins or self._often(0.4) else None)
            return Select((star,), source, joins, where), visible[0].columns
        count = self.chance.choice((1, 2, 2, 3, 4))
        items: list[Item] = []
        for name in self._names(count):
            items.append(self._item(columns, scope, name, items))
        items = _apart(items)
        distinct = self._often(0.18) and not any(item.expr.kind == "fuzzy" for item in items)
        if not distinct and self._often(0.16):
            items[-1] = Item(self.window(scope, columns), items[-1].alias)
        elif not distinct and depth == 0 and self._often(0.06):
            items[-1] = Item(self.make.generator(columns), items[-1].alias)
        if not distinct and self._often(0.05):
            scalar = self.scalar(scope)
            if scalar is not None:
                items[-1] = Item(scalar, items[-1].alias)
        return Select(tuple(items), source, joins, where, distinct=distinct), _outputs(items)

    def _item(self, columns: list[Col], scope: Scope, name: str, before: list[Item]) -> Item:
        if self._often(0.5):
            column = self.chance.choice(columns)
            taken = {item.alias.lower() for item in before}
            return Item(column, column.name if column.name.lower() not in taken and self._often(0.6) else name)
        if before and self._often(0.08):
            last = before[-1]
            if last.expr.kind == "int" and last.alias.lower() not in _visible(scope) and isinstance(last.expr, Op):
                meaning = AliasRef("int", last.alias, last.expr)
                return Item(Op("int", "{0} * 2", (meaning,), 5, (5,)), name)
        kinds = [kind for kind in KINDS if any(column.kind == kind for column in columns)] or KINDS
        return Item(self.make.any(self.chance.choice(kinds), columns, 2), name)

    def total(
        self, source: Source, joins: tuple[Join, ...], where: Expr | None, scope: Scope
    ) -> tuple[Select, tuple[tuple[str, Kind], ...]]:
        """One row of all rows."""
        columns = scope.columns(self.chance)
        items = [Item(self.make.aggregate(columns), name) for name in self._names(self.chance.randint(1, 3))]
        having = self._having(columns, [], items) if self._often(0.1) else None
        return Select(tuple(items), source, joins, where, having=having), _outputs(items)

    def grouped(
        self, source: Source, joins: tuple[Join, ...], where: Expr | None, scope: Scope
    ) -> tuple[Select, tuple[tuple[str, Kind], ...]]:
        columns = scope.columns(self.chance)
        keys = [self._key(columns) for _ in range(self.chance.choice((1, 1, 1, 2, 2, 3)))]
        names = self._names(len(keys) + 3)
        items = [Item(key, self._key_name(key, names.pop(), scope)) for key in keys]
        items = _apart(items)
        all_keys = self._often(0.12)
        hidden = not all_keys and self._often(0.15)
        if hidden:
            items.pop()
        if not all_keys and self._often(0.12):
            items.append(Item(self.make.of_key(self.chance.choice(keys)), names.pop()))
        for _ in range(self.chance.choice((0, 1, 1, 2)) if items else 1):
            items.append(Item(self.make.aggregate(columns), names.pop()))
        if not all_keys and self._often(0.06):
            items.append(Item(self.make.window_over_groups(keys, columns), "Place"))
        items = _apart(items)
        if self._often(0.15):
            self.chance.shuffle(items)
        written = [Key(key, self._style(key, items, scope)) for key in keys]
        having = self._having(columns, [] if all_keys else keys, items) if self._often(0.25) else None
        distinct = self._often(0.04)
        shown = tuple(items)
        return Select(shown, source, joins, where, tuple(written), all_keys, having, distinct), _outputs(items)

    def _having(self, columns: list[Col], keys: list[Expr], items: list[Item]) -> Expr | None:
        """None where a bare name could mean a column of the result as well: engines differ in that."""
        found = self.make.about_aggregates(columns, keys)
        taken = {item.alias.lower() for item in items}
        return None if any(c.bare or c.alias is None for c in cols(found) if c.name.lower() in taken) else found

    def _key(self, columns: list[Col]) -> Expr:
        if self._often(0.55):
            return self.chance.choice([column for column in columns if column.kind != "fuzzy"])
        return self.make.key(columns)

    def _key_name(self, key: Expr, name: str, scope: Scope) -> str:
        return key.name if isinstance(key, Col) and self._often(0.6) else name

    def _style(self, key: Expr, items: list[Item], scope: Scope) -> str:
        style = self.chance.choice(("expr", "expr", "expr", "ordinal", "alias"))
        alias = next((item.alias for item in items if item.expr == key), None)
        return "expr" if style == "alias" and (alias is None or alias.lower() in _visible(scope)) else style

    # FROM

    def sources(self, depth: int, outer: tuple[Binding, ...]) -> tuple[Source, tuple[Join, ...], Scope]:
        aliases = self.chance.sample(ALIASES, len(ALIASES))
        count = self.chance.choice((0, 0, 0, 0, 1, 1, 2))
        source, first = self.source(depth, aliases.pop(), lone=count == 0, first=True)
        scope, joins = Scope((first,), outer), []
        for number in range(count):
            binding_source, binding = self.source(depth, aliases.pop(), lone=False)
            kind = self._join_kind()
            if number == 0 and count == 1 and (shared := _shared(first, binding)) and self._often(0.15):
                kind = "CROSS JOIN" if kind == "CROSS JOIN" else kind
                if kind != "CROSS JOIN" and "ANTI" not in kind and "SEMI" not in kind:
                    joins.append(Join(kind, binding_source, using=self.chance.choice(shared)))
                    scope = Scope((first, binding), outer, (str(joins[-1].using),))
                    break
            together = Scope((*scope.bindings, binding), outer)
            on = None if kind == "CROSS JOIN" else self.on(scope, together, binding)
            joins.append(Join(kind, binding_source, on))
            if "SEMI" in kind or "ANTI" in kind:
                continue
            scope = replace(together, bindings=tuple(replace(one, unique=None) for one in together.bindings))
        return source, tuple(joins), scope

    def _join_kind(self) -> str:
        return self.chance.choice(JOINS)

    def source(self, depth: int, alias: str, lone: bool, first: bool = False) -> tuple[Source, Binding]:
        dice = self.chance.random()
        open_ctes = [(name, columns) for name, columns in self.ctes if name.lower() not in self.closed]
        if open_ctes and dice < 0.6:
            name, columns = self.chance.choice(open_ctes)
            shadowed = [other for other, _ in open_ctes if other.lower() == name.lower()]
            if len(shadowed) == 1:
                given = None if lone and self._often(0.5) else alias
                return CteRef(name, given), Binding(given or name, columns)
        if depth > 0 and dice < (0.55 if first else 0.2):
            query, columns = self.whole(depth - 1, ())
            given = None if lone and self._often(0.25) else alias
            return Sub(query, given), Binding(given, columns)
        name = self.chance.choice(self.tables)
        columns = tuple((column, kind_of(declared)) for column, declared in INFOS[name].columns.items())
        unique = INFOS[name].keys[0] if INFOS[name].keys else None
        given = None if lone and self._often(0.6) else alias
        return Table(name, given), Binding(given or name.partition(".")[2], columns, unique)

    def on(self, scope: Scope, together: Scope, binding: Binding) -> Expr:
        left = scope.columns(self.chance, [one for one in scope.bindings if one.alias])
        right = together.columns(self.chance, [binding])
        together_columns = together.columns(self.chance)
        left = [_told(column, together) for column in left]
        right = [_told(column, together) for column in right]
        condition = self._equal(left, right)
        dice = self.chance.random()
        if dice < 0.12:
            extra: Expr | None = self._equal(left, left)  # not about the joined table
        elif dice < 0.24:
            extra = self._equal(left, together_columns)
        elif dice < 0.36:
            extra = self.make.boolean(right, 1)
        elif dice < 0.42:
            extra = self.make.boolean(left, 1)
        else:
            extra = None
        if extra is None:
            return condition
        return self.make.both(condition, extra) if self._often(0.92) else self.make.either(condition, extra)

    def _equal(self, left: list[Col], right: list[Col]) -> Expr:
        pairs = [(one, other) for one in left for other in right if _comparable(one, other)]
        if not pairs:
            return self.make.boolean(right or left, 1)
        one, other = self.chance.choice(pairs)
        steering = [c for c in left if c.kind == one.kind and c.alias != one.alias]
        if steering and self._often(0.25):
            steered = Op(one.kind, "coalesce({0}, {1})", (one, self.chance.choice(steering)))
            return Op("bool", "{0} = {1}", (other, steered), COMPARE, (ADD, ADD))
        sign, duck = self.chance.choice((("=", None),) * 6 + (("<=>", "IS NOT DISTINCT FROM"), (">=", None)))
        if self._often(0.5):
            one, other = other, one
        if self._often(0.06) and one.kind == "int":
            return Op("bool", "{0} = {1} + 1", (one, other), COMPARE, (ADD, ADD))
        text = None if duck is None else f"{{0}} {duck} {{1}}"
        return Op("bool", f"{{0}} {sign} {{1}}", (one, other), COMPARE, (ADD, ADD), text)

    # WHERE, and subqueries in expressions

    def filter(self, scope: Scope, depth: int) -> Expr:
        columns = scope.columns(self.chance)
        condition = self.make.boolean(columns, 2)
        if scope.outer or depth < 0 or not self._often(0.16):
            return condition
        found = self.predicate(scope, columns)
        if self._often(0.4):
            return found
        return self.make.both(condition, found) if self._often(0.7) else self.make.either(found, condition)

    def predicate(self, scope: Scope, columns: list[Col]) -> Expr:
        """IN (SELECT ...), EXISTS, or a comparison with a scalar subquery."""
        dice = self.chance.random()
        negated = "NOT " if self._often(0.35) else ""
        if dice < 0.5:
            column = self.chance.choice([c for c in columns if c.kind in ("int", "str")] or columns)
            column = replace(column, bare=False)
            inner = self._below(scope, correlated=self._often(0.15))
            fitting = [c for c in inner[2].columns(self.chance) if c.kind == column.kind]
            if fitting:
                select = Select((Item(self.chance.choice(fitting), "v"),), inner[0], (), inner[1])
                return Op("bool", f"{{0}} {negated}IN ({{1}})", (column, Query(select)), COMPARE, (ADD, OR))
        if dice < 0.85:
            source, where, _ = self._below(scope, correlated=self._often(0.85))
            select = Select((Item(Op("int", "1"), "one"),), source, (), where)
            return Op("bool", f"{negated}EXISTS ({{0}})", (Query(select),), 2 if negated else 7)
        scalar = self.scalar(scope)
        number = self.make.integer(columns, 1)
        if scalar is None:
            return self.make.boolean(columns, 1)
        return Op("bool", "{0} >= {1}", (number, scalar), COMPARE, (ADD, ADD))

    def scalar(self, scope: Scope) -> Expr | None:
        source, where, inner = self._below(scope, correlated=self._often(0.5))
        numbers = [column for column in inner.columns(self.chance) if column.kind == "int"]
        if not numbers:
            return None
        what = Op("int", self.chance.choice(("max({0})", "min({0})", "count({0})")), (self.chance.choice(numbers),))
        return Op("int", "({0})", (Query(Select((Item(what, "v"),), source, (), where)),))

    def _below(self, scope: Scope, correlated: bool) -> tuple[Source, Expr | None, Scope]:
        """A table inside an expression. Its alias may be one of the outside, which it then hides."""
        source, binding = self.source(0, self.chance.choice(ALIASES), lone=False)
        inner = Scope((binding,), scope.bindings)
        columns = inner.columns(self.chance)
        where = self.make.boolean(columns, 1) if self._often(0.4) else None
        if correlated:
            reach = [one for one in scope.bindings if one.alias and one.alias.lower() != str(binding.alias).lower()]
            outside = [replace(c, bare=False) for c in scope.columns(self.chance, reach) if c.alias]
            pairs = [(a, b) for a in columns for b in outside if _comparable(a, b)]
            if pairs:
                equal = Op("bool", "{0} = {1}", self.chance.choice(pairs), COMPARE, (ADD, ADD))
                where = equal if where is None else Op("bool", "{0} AND {1}", (equal, where), AND, (AND, AND))
        return source, where, inner

    def window(self, scope: Scope, columns: list[Col]) -> Expr:
        unique = None
        if len(scope.bindings) == 1 and scope.bindings[0].unique:
            unique = Col("int", str(scope.bindings[0].unique), scope.bindings[0].alias)
        return self.make.window(columns, unique)

    def _names(self, count: int) -> list[str]:
        return self.chance.sample(NAMES, count)

    def _often(self, share: float) -> bool:
        return self.chance.random() < share


def _shared(one: Binding, other: Binding) -> list[str]:
    if one.alias is None or other.alias is None:
        return []
    kinds = dict(one.columns)
    return [name for name, kind in other.columns if kinds.get(name) == kind and kind != "fuzzy"]


def _told(column: Col, scope: Scope) -> Col:
    """In a join both sides are in sight, so a bare name must be single among both."""
    return column if scope.names.count(column.name.lower()) == 1 else replace(column, bare=False)


def _comparable(one: Col, other: Col) -> bool:
    numbers = ("int", "dec")
    fits = one.kind == other.kind or (one.kind in numbers and other.kind in numbers)
    return fits and one.kind in ("int", "dec", "str", "date", "bool") and one != other


def _visible(scope: Scope) -> set[str]:
    return {name.lower() for binding in (*scope.bindings, *scope.outer) for name, _ in binding.columns}


def _outputs(items: Sequence[Item]) -> tuple[tuple[str, Kind], ...]:
    return tuple((item.alias, item.expr.kind) for item in items)


def _apart(items: Sequence[Item]) -> list[Item]:
    """No two columns of one name."""
    seen: set[str] = set()
    result = []
    for item in items:
        alias = item.alias
        while alias.lower() in seen:
            alias += "2"
        seen.add(alias.lower())
        result.append(replace(item, alias=alias))
    return result
