"""Random expressions of every kind over given columns: operators of all strengths, functions, aggregates, windows."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from query_model import ADD, AND, ATOM, COMPARE, MULTIPLY, NOT, OR, UNARY, Col, Expr, Kind, Op
from query_tables import WORDS

Columns = Sequence[Col]


def literal_text(word: str, doubled: bool) -> str:
    """A string as users write it: with the apostrophe doubled, or between double quotes."""
    if doubled or '"' in word:
        return "'" + word.replace("'", "''") + "'"
    return f'"{word}"'


class Expressions:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def any(self, kind: Kind, columns: Columns, depth: int) -> Expr:
        makers: dict[Kind, Callable[[Columns, int], Expr]] = {
            "int": self.integer,
            "dec": self.decimal,
            "dbl": self.double,
            "str": self.string,
            "bool": self.boolean,
            "date": self.date,
            "ts": self.moment,
        }
        return makers[kind](columns, depth)

    def literal(self, kind: Kind) -> Expr:
        if kind == "str":
            word = self.chance.choice([word for word in WORDS if word])
            return Op("str", literal_text(word, self.chance.random() < 0.85), duck=literal_text(word, True))
        if kind == "dec":
            return Op("dec", self.chance.choice(("0.50", "1.00", "2.50", "10.00")))
        if kind == "dbl":
            return Op("dbl", "cast(1.5 AS double)")
        if kind == "bool":
            return Op("bool", self.chance.choice(("true", "false")))
        if kind == "date":
            return Op("date", f"DATE '{self._value('date')}'")
        if kind == "ts":
            return Op("ts", f"TIMESTAMP_NTZ '{self._value('ts')}'", duck=f"TIMESTAMP '{self._value('ts')}'")
        return Op("int", str(self.chance.randint(0, 5)))

    def _value(self, kind: Kind) -> Any:
        """The same for both texts of one literal."""
        return {"date": "2024-01-31", "ts": "2024-01-01 12:00:00"}[kind]

    def _column(self, kind: Kind, columns: Columns) -> Expr:
        fitting = [column for column in columns if column.kind == kind]
        return self.chance.choice(fitting) if fitting else self.literal(kind)

    def _present(self, kinds: Sequence[Kind], columns: Columns) -> Kind:
        """A kind that some column has: comparing constants tells little."""
        found = [kind for kind in kinds if any(column.kind == kind for column in columns)]
        return self.chance.choice(found or kinds)

    def _leaf(self, kind: Kind, columns: Columns, literals: float = 0.1) -> Expr:
        return self.literal(kind) if self.chance.random() < literals else self._column(kind, columns)

    # numbers

    def integer(self, columns: Columns, depth: int) -> Expr:
        if depth <= 0 or self.chance.random() < 0.4:
            return self._leaf("int", columns)
        one, two = (self.integer(columns, depth - 1) for _ in range(2))
        number = self.chance.randrange(14)
        if number < 3:
            return Op("int", "{0} + {1}", (one, two), ADD, (ADD, ADD))
        if number < 5:
            return Op("int", "{0} - {1}", (one, two), ADD, (ADD, MULTIPLY))
        if number < 7:
            return Op("int", "{0} * {1}", (one, self.literal("int")), MULTIPLY, (MULTIPLY, UNARY))
        if number == 7:
            return Op("int", "{0} % 2", (one,), MULTIPLY, (MULTIPLY,))
        if number == 8:
            return Op("int", "abs({0})", (one,))
        if number == 9:
            return Op("int", "coalesce({0}, {1})", (one, two))
        if number == 10:
            return Op("int", "CASE WHEN {0} THEN {1} ELSE {2} END", (self.boolean(columns, depth - 1), one, two))
        if number == 11:
            return Op("int", "length({0})", (self.string(columns, depth - 1),))
        if number == 12:
            text = self.chance.choice(("year({0})", "month({0})", "day({0})"))
            return Op("int", text, (self.date(columns, depth - 1),))
        if self.chance.random() < 0.5:
            return Op("int", self.chance.choice(("greatest({0}, {1})", "if({0} > 1, {0}, {1})")), (one, two))
        return Op("int", "-{0}", (one,), UNARY, (ATOM,)) if cols(one) else Op("int", "nullif({0}, 1)", (one,))

    def decimal(self, columns: Columns, depth: int) -> Expr:
        if depth <= 0 or self.chance.random() < 0.5:
            return self._leaf("dec", columns)
        one = self.decimal(columns, depth - 1)
        number = self.chance.randrange(7)
        if number < 2:
            return Op("dec", "{0} * {1}", (one, self.literal("int")), MULTIPLY, (MULTIPLY, UNARY))
        if number < 4:
            return Op("dec", "{0} + {1}", (one, self.decimal(columns, depth - 1)), ADD, (ADD, ADD))
        if number == 4:
            return Op("dec", "coalesce({0}, 0.50)", (one,))
        if number == 5:
            return Op("dec", "CASE WHEN {0} THEN {1} END", (self.boolean(columns, depth - 1), one))
        return Op("dec", "round({0}, 1)", (one,))

    def double(self, columns: Columns, depth: int) -> Expr:
        if depth <= 0 or self.chance.random() < 0.4:
            return self._leaf("dbl", columns)
        number = self.chance.randrange(3)
        if number == 0:
            return Op("fuzzy", "log10(abs({0}) + 1)", (self.decimal(columns, depth - 1),), holes=(OR,))
        if number == 1:
            return Op("dbl", "cast({0} AS double)", (self.decimal(columns, depth - 1),))
        return Op("dbl", "{0} * 0.5", (self.double_exact(columns),), MULTIPLY, (MULTIPLY,))

    def double_exact(self, columns: Columns) -> Expr:
        return self._leaf("dbl", columns)

    # text, dates

    def string(self, columns: Columns, depth: int) -> Expr:
        if depth <= 0 or self.chance.random() < 0.45:
            return self._leaf("str", columns, 0.15)
        one = self.string(columns, depth - 1)
        number = self.chance.randrange(9)
        if number < 3:
            return Op("str", "concat({0}, {1})", (one, self.literal("str")), duck="{0} || {1}")
        if number == 3:
            return Op("str", self.chance.choice(("upper({0})", "lower({0})", "trim({0})")), (one,))
        if number == 4:
            return Op("str", "coalesce({0}, {1})", (one, self.literal("str")))
        if number == 5:
            return Op(
                "str",
                "CASE WHEN {0} THEN {1} ELSE {2} END",
                (self.boolean(columns, depth - 1), one, self.literal("str")),
            )
        if number == 6:
            return Op("str", "cast({0} AS string)", (self.integer(columns, depth - 1),))
        if number == 7:
            field = self.chance.choice(("City", "zone", "Cat"))
            duck = f"CAST(json_object('{field}', {{0}}) AS VARCHAR)"
            return Op("str", f"to_json(named_struct('{field}', {{0}}))", (one,), duck=duck)
        return Op("str", "substr({0}, 1, 2)", (one,))

    def date(self, columns: Columns, depth: int) -> Expr:
        if depth <= 0 or self.chance.random() < 0.6:
            return self._leaf("date", columns)
        if self.chance.random() < 0.5:
            return Op("date", "cast({0} AS date)", (self._column("ts", columns),))
        return Op("date", "date_add({0}, 1)", (self._column("date", columns),), duck="CAST({0} + 1 AS DATE)")

    def moment(self, columns: Columns, depth: int) -> Expr:
        if depth <= 0 or self.chance.random() < 0.7:
            return self._leaf("ts", columns)
        return Op("ts", "date_trunc('hour', {0})", (self._column("ts", columns),))

    # conditions

    def boolean(self, columns: Columns, depth: int) -> Expr:
        if depth > 0 and self.chance.random() < 0.5:
            number = self.chance.randrange(10)
            one, two = self.boolean(columns, depth - 1), self.boolean(columns, depth - 1)
            if number < 4:
                return self.either(one, two)
            if number < 8:
                return self.both(one, two)
            return Op("bool", "NOT {0}", (one,), NOT, (NOT,))
        number = self.chance.randrange(16)
        kind = self._present(("int", "int", "int", "dec", "str", "date"), columns)
        one = self.any(kind, columns, depth - 1)
        if number < 5:
            sign = self.chance.choice(("=", ">", "<", ">=", "<=", "<>", "!=") if kind != "str" else ("=", "<>", "="))
            other = self.literal(kind) if self.chance.random() < 0.7 else self.any(kind, columns, depth - 1)
            return Op("bool", f"{{0}} {sign} {{1}}", (one, other), COMPARE, (ADD, ADD))
        if number < 7:
            return Op("bool", self.chance.choice(("{0} IS NULL", "{0} IS NOT NULL")), (one,), COMPARE, (ADD,))
        flags = any(column.kind == "bool" for column in columns)
        if number < 9 and flags:
            return self._column("bool", columns)
        if number == 9 and flags:
            return Op("bool", "NOT {0}", (self._column("bool", columns),), NOT, (NOT,))
        if number == 10:
            words = ", ".join(literal_text(w, True) for w in self.chance.sample([w for w in WORDS if w], 2))
            negated = self.chance.choice(("", "NOT "))
            return Op("bool", f"{{0}} {negated}IN ({words})", (self.string(columns, depth - 1),), COMPARE, (ADD,))
        if number == 11:
            return Op("bool", "{0} BETWEEN 0 AND 2", (self.integer(columns, depth - 1),), COMPARE, (ADD,))
        if number == 12:
            pattern = self.chance.choice(("'o%'", "'%''%'", "'a'"))
            return Op("bool", f"{{0}} LIKE {pattern}", (self.string(columns, depth - 1),), COMPARE, (ADD,))
        if number == 13:
            args = (one, self.any(kind, columns, depth - 1))
            return Op("bool", "{0} <=> {1}", args, COMPARE, (ADD, ADD), "{0} IS NOT DISTINCT FROM {1}")
        if number == 14 and flags:
            return Op("bool", "coalesce({0}, false)", (self._column("bool", columns),))
        return Op("bool", "{0} IN (0, 1)", (self.integer(columns, depth - 1),), COMPARE, (ADD,))

    def both(self, one: Expr, two: Expr) -> Expr:
        return Op("bool", "{0} AND {1}", (one, two), AND, (AND, AND))

    def either(self, one: Expr, two: Expr) -> Expr:
        return Op("bool", "{0} OR {1}", (one, two), OR, (OR, OR))

    # groups

    def key(self, columns: Columns) -> Expr:
        """A group key that is more than a column; never a literal, which would be an ordinal."""
        for _ in range(20):
            kind = self._present(("int", "int", "bool", "bool", "str", "date", "ts"), columns)
            found = self.any(kind, columns, 1)
            if isinstance(found, Op) and found.args and cols(found):
                return found
        return self.chance.choice([column for column in columns if column.kind != "fuzzy"] or columns)

    def of_key(self, key: Expr) -> Expr:
        """A column that follows from a key."""
        if key.kind == "int":
            return Op("int", self.chance.choice(("{0} * 2", "{0} % 2")), (key,), MULTIPLY, (MULTIPLY,))
        if key.kind == "str":
            return Op("str", "coalesce({0}, '''none''')", (key,))
        if key.kind == "bool":
            return Op("bool", "NOT {0}", (key,), NOT, (NOT,))
        return Op("bool", "{0} IS NULL", (key,), COMPARE, (ADD,))

    def aggregate(self, columns: Columns) -> Expr:
        if self.chance.random() < 0.12:
            one, two = self.exact_aggregate(columns), self.exact_aggregate(columns)
            return Op("int", "{0} + {1}", (one, two), ADD, (ADD, ADD), aggregate=True)
        if self.chance.random() < 0.08:
            return Op("int", "coalesce({0}, -1)", (self.exact_aggregate(columns),), aggregate=True)
        if self.chance.random() < 0.35:
            return self.exact_aggregate(columns)
        number = self.chance.randrange(13)
        if number == 0:
            return self._agg("int", "count(DISTINCT {0})", (self._key_value(columns),))
        if number == 1:
            return self._agg("dec", "sum({0})", (self.decimal(columns, 1),))
        if number == 2:
            return self._agg("fuzzy", "avg({0})", (self.decimal(columns, 1),))
        if number == 3:
            text = self.chance.choice(("avg({0})", "mean({0})"))
            return self._agg("dbl", text, (self.integer(columns, 1),), "avg({0})")
        if number == 4:
            return self._agg("dbl", "sum({0})", (self._column("dbl", columns),))
        if number == 5:
            kind = self._present(("int", "dec", "str", "date", "ts"), columns)
            return self._agg(kind, self.chance.choice(("min({0})", "max({0})")), (self.any(kind, columns, 1),))
        if number == 6:
            text, duck = self.chance.choice(
                (("bool_and({0})",) * 2, ("every({0})", "bool_and({0})"), ("some({0})", "bool_or({0})"))
            )
            return self._agg("bool", text, (self.boolean(columns, 1),), duck)
        if number == 7:
            text = self.chance.choice(("stddev({0})", "std({0})"))
            return self._agg("fuzzy", text, (self.integer(columns, 1),), "stddev({0})")
        if number == 8:
            order = self.chance.choice(("", " DESC"))
            return self._agg(
                "fuzzy", f"percentile_cont(0.5) WITHIN GROUP (ORDER BY {{0}}{order})", (self._column("int", columns),)
            )
        if number == 9:
            return self._agg(
                "dec", "sum({0}) FILTER (WHERE {1})", (self._column("dec", columns), self.boolean(columns, 1))
            )
        if number == 10:
            return self._agg(
                "int",
                "sum(CASE WHEN {0} THEN {1} ELSE 0 END)",
                (self.boolean(columns, 1), self._column("int", columns)),
            )
        if number == 11:
            return self._agg("int", "sum(DISTINCT {0})", (self._column("int", columns),))
        return self._agg("int", "try_sum({0})", (self._column("int", columns),), "sum({0})")

    def exact_aggregate(self, columns: Columns) -> Expr:
        number = self.chance.randrange(6)
        if number < 2:
            return self._agg("int", "count(*)", ())
        if number == 2:
            return self._agg("int", "count({0})", (self._key_value(columns),))
        if number == 3:
            return self._agg("int", "sum({0})", (self.integer(columns, 1),))
        if number == 4:
            return self._agg("int", "count_if({0})", (self.boolean(columns, 1),), "count(CASE WHEN {0} THEN 1 END)")
        return self._agg("int", "count(*) FILTER (WHERE {0})", (self.boolean(columns, 1),))

    def about_aggregates(self, columns: Columns, keys: Sequence[Expr] = ()) -> Expr:
        one = Op("bool", "{0} > {1}", (self.exact_aggregate(columns), self.literal("int")), COMPARE, (ADD, ADD))
        if keys and self.chance.random() < 0.4:
            key = Op("bool", "{0} IS NOT NULL", (self.chance.choice(keys),), COMPARE, (ADD,))
            return self.either(one, key) if self.chance.random() < 0.5 else self.both(one, key)
        return one

    def _agg(self, kind: Kind, text: str, args: tuple[Expr, ...], duck: str | None = None) -> Op:
        return Op(kind, text, args, duck=duck, aggregate=True)

    def _key_value(self, columns: Columns) -> Expr:
        return self.chance.choice([column for column in columns if column.kind != "fuzzy"] or [self.literal("int")])

    # windows, generators

    def window(self, columns: Columns, unique: Expr | None) -> Expr:
        fitting = [column for column in columns if column.kind in ("int", "str", "date", "bool")]
        part = self.chance.choice(fitting) if fitting and self.chance.random() < 0.75 else None
        if part is not None and self.chance.random() < 0.15:
            part = self.key(columns)
        by = "PARTITION BY {0}" if part is not None else ""
        order = self.chance.choice(("ORDER BY {1}", "ORDER BY {1} DESC"))
        args: tuple[Expr, ...] = (part or self.literal("int"), unique or self._column("int", columns))
        if unique is not None and self.chance.random() < 0.5:
            text = self.chance.choice(("row_number()", "lag({2})", "sum({2})", "lead({2})"))
        else:
            text = self.chance.choice(("rank()", "dense_rank()", "sum({2})", "count(*)", "max({2})"))
            if "(" in text and text not in ("rank()", "dense_rank()") and self.chance.random() < 0.5:
                order = ""
        value = self._column("int", columns)
        return Op("int", f"{text} OVER ({' '.join(filter(None, (by, order)))})", (*args, value), window=True)

    def window_over_groups(self, keys: Sequence[Expr], columns: Columns) -> Expr:
        by = "PARTITION BY {0} " if self.chance.random() < 0.7 else ""
        args = (self.chance.choice(keys), self.exact_aggregate(columns))
        return Op("int", f"rank() OVER ({by}ORDER BY {{1}})", args, window=True)

    def generator(self, columns: Columns) -> Expr:
        args = (self._column("int", columns), self._column("int", columns))
        # Spark's stack takes values of one type: ours are of several widths.
        wide = "stack(2, cast({0} AS bigint), cast({1} AS bigint))"
        text = self.chance.choice(("explode(array({0}, {1}))", wide))
        return Op("int", text, args, duck="unnest(list_value({0}, {1}))")


def cols(expr: Expr) -> list[Col]:
    """The columns that an expression reads."""
    if isinstance(expr, Col):
        return [expr]
    return (
        [found for arg in expr.args if isinstance(arg, (Op, Col)) for found in cols(arg)]
        if isinstance(expr, Op)
        else []
    )
