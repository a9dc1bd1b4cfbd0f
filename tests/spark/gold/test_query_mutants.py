"""The generator itself is tested: a plan that is broken on purpose must not get past the queries.

A mutant damages the pieces of a plan as an earlier planner did, or as a careless one would. It is caught when a query
fails with it that passes without it. Below them are breaks of the planner itself, which know its functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from query_check import Case, case_of, cases_of, cases_with, check
from query_dialect import TOKEN
from query_regressions import CLOCKS, REGRESSIONS, SCENARIOS
from query_tables import INFOS

from lodestream.pipeline.gold import GoldPlan, analyse, feed_view

MOST = 250
PIECES = (
    "full_sql",
    "delta_sql",
    "both_sql",
    "fold_sql",
    "present_sql",
    "store_sql",
    "unpack_sql",
    "recompute_sql",
)
Damage = Callable[[GoldPlan], GoldPlan]


def everywhere(change: Callable[[str], str], *, pieces: tuple[str, ...] = PIECES, keys: bool = True) -> Damage:
    """The same damage to every piece of SQL."""

    def damaged(plan: GoldPlan) -> GoldPlan:
        texts = {piece: change(text) for piece in pieces if (text := getattr(plan, piece)) is not None}
        touched = {name: change(sql) if keys else sql for name, sql in plan.affected_sql.items()}
        return replace(plan, **texts, affected_sql=touched)

    return damaged


def tokens_of(sql: str) -> list[str]:
    return [found.group() for found in TOKEN.finditer(sql)]


def group_end(tokens: list[str], start: int) -> int:
    """The place of the parenthesis that closes the one at `start`."""
    depth = 0
    for place in range(start, len(tokens)):
        depth += (tokens[place] == "(") - (tokens[place] == ")")
        if depth == 0:
            return place
    return len(tokens) - 1


def word_before(tokens: list[str], place: int) -> str:
    return next((token.lower() for token in reversed(tokens[:place]) if token.strip()), "")


def top_level(tokens: list[str], start: int, end: int) -> Iterator[str]:
    depth = 0
    for token in tokens[start + 1 : end]:
        depth += (token == "(") - (token == ")")
        if depth == 0:
            yield token.upper()


def without_parentheses(sql: str, around: frozenset[str]) -> str:
    """Groups that are only there to bind lose their parentheses."""
    tokens = tokens_of(sql)
    for place, token in enumerate(tokens):
        if token != "(" or re.fullmatch(
            r"(?!and$|or$|not$|on$|where$|when$|select$|then$|else$|distinct$|by$)\w+|`.*`", word_before(tokens, place)
        ):
            continue
        end = group_end(tokens, place)
        found = set(top_level(tokens, place, end))
        if found & around and "SELECT" not in found:
            tokens[place], tokens[end] = " ", " "
    return "".join(tokens)


def lost_parentheses_of_conditions(plan: GoldPlan) -> GoldPlan:
    """`(fare > 10 OR qty > 5) AND zone = 1` becomes `fare > 10 OR qty > 5 AND zone = 1`."""
    return everywhere(lambda sql: without_parentheses(sql, frozenset(["OR", "AND"])))(plan)


def lost_parentheses_of_sums(plan: GoldPlan) -> GoldPlan:
    """`(zone + qty) * 2` becomes `zone + qty * 2`."""
    return everywhere(lambda sql: without_parentheses(sql, frozenset(["+", "-"])))(plan)


def lost_parentheses_in_touched_keys(plan: GoldPlan) -> GoldPlan:
    """The rows are right, but the keys that a change touches are not."""
    return everywhere(lambda sql: without_parentheses(sql, frozenset(["+", "-", "OR", "AND"])), pieces=())(plan)


def null_is_no_key(plan: GoldPlan) -> GoldPlan:
    """Keys are compared with `=`, so the null group is never recomputed."""
    change = lambda sql: sql.replace("<=>", "=").replace("IS NOT DISTINCT FROM", "=")  # noqa: E731
    return everywhere(change, pieces=("recompute_sql",), keys=False)(plan)


def lower_case_fields(plan: GoldPlan) -> GoldPlan:
    """`named_struct('City', ...)` becomes `named_struct('city', ...)`, `struct(x AS Cat)` `struct(x AS cat)`."""

    def lowered(sql: str) -> str:
        sql = re.sub(r"(?i)(named_struct\(')(\w+)(')", lambda m: m[1] + m[2].lower() + m[3], sql)
        return re.sub(r"(?i)(\bstruct\([^()]* AS )(\w+)", lambda m: m[1] + m[2].lower(), sql)

    return everywhere(lowered)(plan)


def undoubled_quotes(plan: GoldPlan) -> GoldPlan:
    r"""`'o''hara'` is read as `'ohara'`."""

    def undoubled(sql: str) -> str:
        return "".join(
            f"'{token[1:-1].replace(chr(39) * 2, '')}'" if token[0] == "'" else token for token in tokens_of(sql)
        )

    return everywhere(undoubled)(plan)


def another_logarithm(plan: GoldPlan) -> GoldPlan:
    """`log10(x)` becomes `log(10, x)`, which rounds otherwise."""
    return everywhere(lambda sql: re.sub(r"(?i)\blog10\(", "LOG(10, ", sql))(plan)


def unwrapped(sql: str, names: frozenset[str], instead: Callable[[str], str]) -> str:
    """Calls of these functions, below the outermost SELECT, give way to what `instead` makes of their arguments."""
    tokens, depth = tokens_of(sql), 0
    for place, token in enumerate(tokens):
        depth += (token == "(") - (token == ")")
        if depth > 0 and token.lower() in names and place + 1 < len(tokens) and tokens[place + 1] == "(":
            end = group_end(tokens, place + 1)
            tokens[place : end + 1] = [instead("".join(tokens[place + 2 : end])), *[""] * (end - place)]
    return "".join(tokens)


def merged_aggregates(plan: GoldPlan) -> GoldPlan:
    """A subquery of one row is taken for one with a row per row."""
    names = frozenset(["sum", "count", "max", "min"])
    only = ("full_sql", "recompute_sql")
    change = lambda sql: unwrapped(sql, names, lambda inside: inside if inside != "*" else "1")  # noqa: E731
    return everywhere(change, pieces=only, keys=False)(plan) if plan.strategy == "full" else plan


def merged_generators(plan: GoldPlan) -> GoldPlan:
    """A generator is taken for a function: a row is still one row."""
    names = frozenset(["stack", "explode"])
    return everywhere(lambda sql: unwrapped(sql, names, lambda inside: "1"))(plan)


def forgotten_conditions(plan: GoldPlan) -> GoldPlan:
    """Of a join's conditions only the first counts."""

    def shorter(sql: str) -> str:
        tokens = tokens_of(sql)
        for place, token in enumerate(tokens):
            if token.upper() == "ON" and "_lode_k" not in "".join(tokens[place : place + 12]):
                for after in range(place + 1, len(tokens)):
                    if tokens[after].upper() in ("WHERE", "GROUP", "JOIN", "LEFT", "FULL", "CROSS", "INNER", "(", ")"):
                        break
                    if tokens[after].upper() == "AND":
                        tokens[after] = "OR"
                        break
        return "".join(tokens)

    return everywhere(shorter)(plan)


def one_side_forgotten(plan: GoldPlan) -> GoldPlan:
    """The changes of one input touch nothing."""
    if len(plan.affected_sql) < 2:
        return plan
    last = list(plan.affected_sql)[-1]
    nothing = f"SELECT * FROM ({plan.affected_sql[last]}) AS nothing WHERE false"
    return replace(plan, affected_sql={**plan.affected_sql, last: nothing})


def only_rows_that_came(plan: GoldPlan) -> GoldPlan:
    """What went away touches nothing."""
    views = "|".join(feed_view(name) for name in plan.inputs)

    def came(sql: str) -> str:
        return re.sub(rf"\b({views})\b( AS \w+)?", r"(SELECT * FROM \1 WHERE _weight > 0)\2", sql)

    return everywhere(came, pieces=())(plan)


def every_row_comes(plan: GoldPlan) -> GoldPlan:
    """A row that went is added once more."""
    change = lambda sql: re.sub(r"`?\w+`?\._weight AS _weight", "1 AS _weight", sql)  # noqa: E731
    return everywhere(change, pieces=("delta_sql",), keys=False)(plan)


def optional_is_required(plan: GoldPlan) -> GoldPlan:
    """LEFT JOIN is taken for JOIN where keys are sought and rows recomputed."""
    return everywhere(lambda sql: re.sub(r"(?i)\bLEFT JOIN\b", "JOIN", sql))(plan)


def captured_aliases(plan: GoldPlan) -> GoldPlan:
    """Inside IN (SELECT ...), an alias means the one outside."""

    def captured(sql: str) -> str:
        tokens = tokens_of(sql)
        for place, token in enumerate(tokens):
            if token == "(" and word_before(tokens, place) == "in":
                end = group_end(tokens, place)
                inside = "".join(tokens[place : end + 1])
                other = re.sub(r"(?i)(\b_lode_now_\w+ (?:AS )?)(\w+)", r"\1_lode_inner", inside)
                tokens[place : end + 1] = [other, *[""] * (end - place)]
        return "".join(tokens)

    return everywhere(captured)(plan)


def filters_ignored(plan: GoldPlan) -> GoldPlan:
    """`FILTER (WHERE ...)` and WHERE of a feed are left out."""
    return everywhere(
        lambda sql: re.sub(r"(?i)CASE WHEN .*? THEN 1 END", "1", re.sub(r"(?i) FILTER ?\(WHERE [^()]*\)", "", sql))
    )(plan)


def distinct_ignored(plan: GoldPlan) -> GoldPlan:
    return everywhere(lambda sql: re.sub(r"(?i)\((DISTINCT) ", "(", sql), keys=False)(plan)


def hidden_groups_are_lost(plan: GoldPlan) -> GoldPlan:
    """HAVING is forgotten when the state is shown."""
    shown = None if plan.present_sql is None else re.sub(r"(?i) WHERE .*", "", plan.present_sql)
    return replace(plan, present_sql=shown)


def upside_down(plan: GoldPlan) -> GoldPlan:
    """WITHIN GROUP (ORDER BY x DESC): the DESC is ignored."""
    return everywhere(lambda sql: re.sub(r"(?i)(WITHIN GROUP \(ORDER BY [^()]*?) DESC", r"\1", sql))(plan)


def lookups_never_change(plan: GoldPlan) -> GoldPlan:
    """A changed lookup is taken for one that touches nothing."""
    nothing = {
        name: f"SELECT * FROM ({sql}) AS nothing WHERE false" if name in plan.on_lookup_change else sql
        for name, sql in plan.affected_sql.items()
    }
    return replace(plan, affected_sql=nothing, on_lookup_change=dict.fromkeys(plan.on_lookup_change, "affected"))


def groups_never_empty(plan: GoldPlan) -> GoldPlan:
    """A group that lost its last row stays."""
    fold = None if plan.fold_sql is None else re.sub(r"(?i) HAVING CASE .* END", "", plan.fold_sql)
    return replace(plan, fold_sql=fold)


DAMAGES: list[Damage] = [
    lost_parentheses_of_conditions,
    lost_parentheses_of_sums,
    lost_parentheses_in_touched_keys,
    null_is_no_key,
    lower_case_fields,
    undoubled_quotes,
    another_logarithm,
    merged_aggregates,
    merged_generators,
    forgotten_conditions,
    one_side_forgotten,
    only_rows_that_came,
    every_row_comes,
    optional_is_required,
    captured_aliases,
    filters_ignored,
    distinct_ignored,
    hidden_groups_are_lost,
    upside_down,
    lookups_never_change,
    groups_never_empty,
]


@cache
def known_cases() -> list[Case]:
    told = [case for name, given in SCENARIOS.values() for case in cases_with(REGRESSIONS[name], given)]
    return told + [case for sql in REGRESSIONS.values() for case in cases_of(sql, 6)]


@cache
def passes(case_number: int) -> bool:
    return not check(nth_case(case_number)).fault


@cache
def nth_case(number: int) -> Case:
    """What once went wrong, then random queries."""
    known = known_cases()
    return known[number] if number < len(known) else case_of(1, number - len(known))


@cache
def planned(number: int) -> GoldPlan | None:
    case = nth_case(number)
    try:
        return analyse(case.sql, case.infos, force=case.force)
    except Exception:  # what the planner refuses or cannot read is for other tests
        return None


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_plan_is_caught(damage: Damage) -> None:
    for number in range(MOST + len(known_cases())):
        plan = planned(number)
        if plan is None or (damaged := damage(plan)) == plan:
            continue
        if check(nth_case(number), lambda *args, damaged=damaged, **more: damaged).fault and passes(number):
            return
    pytest.fail(f"{damage.__name__} got past {MOST + len(known_cases())} queries")


# Breaks of the planner itself: each patches one function of lodestream.pipeline.gold. They know how it is built, so
# they change with it; add one for every mechanism that a plan must not be without.

Break = Callable[[pytest.MonkeyPatch], None]


def only_what_is_left(patch: pytest.MonkeyPatch) -> None:
    """The other side of a join is read as it is now: when both sides lose a row at once, no key is found."""
    from lodestream.pipeline.gold import touched
    from lodestream.pipeline.gold.plan import now_view

    patch.setattr(touched, "_before_and_after", lambda source: f"{now_view(source.table)} AS {source.alias}")


def aggregates_are_functions(patch: pytest.MonkeyPatch) -> None:
    """No call is seen to unite rows."""
    from lodestream.pipeline.gold import names

    patch.setattr(names, "has_aggregate", lambda node: False)


def bare_substitution(patch: pytest.MonkeyPatch) -> None:
    """What a column stands for is put in its place without parentheses."""
    from lodestream.pipeline.gold.pieces import Piece

    real = Piece.over

    def over(piece: Piece, columns: Any) -> Piece | None:
        found = real(piece, columns)
        return found and Piece(found.tree, tuple(part for part in found.parts if part not in ("(", ")")))

    patch.setattr(Piece, "over", over)


def every_condition_holds(patch: pytest.MonkeyPatch) -> None:
    """The condition of an outer join is believed of rows that found no match."""
    from lodestream.pipeline.gold import joins

    def equalities(scope: Any, optional: Any, full: bool) -> Any:
        for source in scope.sources[1:]:
            for _, left, right in joins._pairs(source.on):
                yield left, right

    patch.setattr(joins, "_equalities", equalities)


def optional_tables_steer_nothing(patch: pytest.MonkeyPatch) -> None:
    """A table that may be missing is not seen to choose the rows of a later join."""
    from lodestream.pipeline.gold import touched

    patch.setattr(touched, "_later", lambda joins, source: ())


def optional_tables_touch_nothing(patch: pytest.MonkeyPatch) -> None:
    """A table that may be missing is not asked for keys."""
    from lodestream.pipeline.gold import touched

    direct, through = touched._direct, touched._through

    def no_keys(sql: str) -> str:
        return f"SELECT * FROM ({sql}) AS nothing WHERE false"

    def never_direct(scope: Any, source: Any, own: Any, joins: Any) -> str:
        sql = direct(scope, source, own, joins)
        return no_keys(sql) if source.alias in joins.optional else sql

    def never_through(scope: Any, source: Any, wanted: Any, joins: Any) -> Any:
        touch = through(scope, source, wanted, joins)
        return replace(touch, sql=no_keys(touch.sql)) if touch.sql and source.alias in joins.optional else touch

    patch.setattr(touched, "_direct", never_direct)
    patch.setattr(touched, "_through", never_through)


def windows_are_functions(patch: pytest.MonkeyPatch) -> None:
    """Window functions are taken for functions of their row."""
    from lodestream.pipeline.gold.scopes import Scope

    patch.setattr(Scope, "windows", property(lambda scope: []))


BREAKS: list[Break] = [
    only_what_is_left,
    aggregates_are_functions,
    bare_substitution,
    every_condition_holds,
    optional_tables_steer_nothing,
    optional_tables_touch_nothing,
    windows_are_functions,
]


@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: broken.__name__)
def test_a_broken_planner_is_caught(broken: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch)
    for number in range(MOST + len(known_cases())):
        if check(nth_case(number)).fault:
            monkeypatch.undo()
            if passes(number):
                return
            broken(monkeypatch)
    pytest.fail(f"{broken.__name__} got past {MOST + len(known_cases())} queries")


def clock_is_constant(patch: pytest.MonkeyPatch) -> None:
    """No function is seen to give another answer at another time."""
    from lodestream.pipeline.gold import query

    patch.setattr(query, "changing", lambda tree: None)


def test_a_planner_that_takes_the_clock_for_a_constant_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = "SELECT zone, count(*) AS n FROM silver.trips WHERE day < current_date() GROUP BY zone"
    assert analyse(clock, INFOS).strategy == "full"
    clock_is_constant(monkeypatch)
    assert any(analyse(sql, INFOS).strategy != "full" for sql in [clock, *CLOCKS.values()])
