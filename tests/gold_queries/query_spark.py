"""Random queries with what DuckDB has no words for: only Spark can judge them."""

from __future__ import annotations

import random

from query_expressions import Columns, Expressions
from query_generator import Generator
from query_model import ADD, COMPARE, Expr, Op, Query


class SparkExpressions(Expressions):
    def string(self, columns: Columns, depth: int) -> Expr:
        if depth <= 0 or self.chance.random() < 0.65:
            return super().string(columns, depth)
        number = self.chance.randrange(9)
        if number == 0:
            return Op("str", "to_char({0}, '9999.99')", (self.decimal(columns, 0),))
        if number == 1:
            return Op("str", "date_format({0}, 'yyyy-MM')", (self.date(columns, depth - 1),))
        if number == 2:
            return Op(
                "str", "to_json(struct({0} AS Cat, {1} AS qty))", (self.string(columns, 0), self.integer(columns, 0))
            )
        if number == 3:
            return Op("str", "to_json(named_struct('It''s', {0}))", (self.integer(columns, depth - 1),))
        if number == 4:
            return Op("str", "concat_ws('''', {0}, 'x')", (self.string(columns, depth - 1),))
        if number == 5:
            return Op("str", "regexp_replace({0}, '[aeiou]', '''')", (self.string(columns, 0),))
        if number == 6:
            return Op("str", "get_json_object(to_json(named_struct('A', {0})), '$.A')", (self.string(columns, 0),))
        if number == 7:
            return Op("str", "cast({0} AS string)", (self.decimal(columns, depth - 1),))
        return (
            Op("str", "r'o\\\\'", ())
            if self.chance.random() < 0.1
            else Op("str", "hex({0})", (self.string(columns, 0),))
        )

    def integer(self, columns: Columns, depth: int) -> Expr:
        if depth <= 0 or self.chance.random() < 0.75:
            return super().integer(columns, depth)
        date = self._column("date", columns)
        number = self.chance.randrange(7)
        if number == 0:
            return Op("int", "unix_date({0})", (date,))
        if number == 1:
            return Op("int", "cast(floor(log10(abs({0}) * 999 + 1)) AS int)", (self.integer(columns, 0),), holes=(ADD,))
        if number == 2:
            return Op("int", self.chance.choice(("weekofyear({0})", "dayofweek({0})", "quarter({0})")), (date,))
        if number == 3:
            return Op("int", "datediff({0}, DATE '2024-01-01')", (date,))
        if number == 4:
            return Op("int", "size(array({0}, {1}))", (self.integer(columns, 0), self.integer(columns, 0)))
        if number == 5:
            return Op("int", "named_struct('A', {0}, 'b', 1).A", (self.integer(columns, depth - 1),))
        return Op("int", "pmod({0}, 3)", (self.integer(columns, depth - 1),))

    def aggregate(self, columns: Columns) -> Expr:
        if self.chance.random() < 0.7:
            return super().aggregate(columns)
        number = self.chance.randrange(8)
        if number == 0:
            return self._agg(
                "fuzzy", "percentile_cont(0.5) WITHIN GROUP (ORDER BY {0} DESC)", (self.decimal(columns, 0),)
            )
        if number == 1:
            return self._agg("fuzzy", "percentile({0}, 0.25)", (self.integer(columns, 0),))
        if number == 2:
            return self._agg("fuzzy", "try_avg({0})", (self.decimal(columns, 0),))
        if number == 3:
            return self._agg("int", "size(collect_set({0}))", (self.string(columns, 1),))
        if number == 4:
            return self._agg("str", "cast(sort_array(collect_list({0})) AS string)", (self.integer(columns, 0),))
        if number == 5:
            return self._agg("fuzzy", "named_struct('Most', max({0}), 'N', count(*))", (self.integer(columns, 0),))
        if number == 6:
            return self._agg("int", "bit_xor({0})", (self.integer(columns, 0),))
        return self._agg("fuzzy", "skewness({0})", (self.integer(columns, 0),))

    def key(self, columns: Columns) -> Expr:
        moments = [column for column in columns if column.kind == "ts"]
        if not moments or self.chance.random() < 0.7:
            return super().key(columns)
        moment = self.chance.choice(moments)
        return Op(
            "ts",
            self.chance.choice(("date_trunc('DAY', {0})", "to_timestamp_ntz(date_format({0}, 'yyyy-MM-dd'))")),
            (moment,),
        )

    def boolean(self, columns: Columns, depth: int) -> Expr:
        if depth <= 0 or self.chance.random() < 0.9:
            return super().boolean(columns, depth)
        text = self.chance.choice(("{0} RLIKE '^[a-o]''?'", "contains({0}, '''')", "{0} ILIKE 'O%'"))
        return Op("bool", text, (self.string(columns, 0),), COMPARE, (ADD,))


def spark_query(seed: int, number: int) -> Query:
    """The same seed and number give the same query."""
    chance = random.Random(f"spark {seed}:{number}")
    generator = Generator(chance)
    generator.make = SparkExpressions(chance)
    return generator.query()
