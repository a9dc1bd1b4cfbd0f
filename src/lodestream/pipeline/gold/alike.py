"""Whether equal values are the same value. Floating-point ones need not be: to SQL -0.0 equals 0.0.

Both are one group and one partition of a window, and yet a function can tell them apart: `cast(x AS string)` does.
"""

from __future__ import annotations

from sqlglot import exp

from lodestream.pipeline.gold.kinds import Kinds
from lodestream.pipeline.gold.parsing import call
from lodestream.pipeline.gold.scopes import Scope
from lodestream.pipeline.gold.spark_functions import ROW_WISE, TIME_WINDOWS
from lodestream.pipeline.gold.types import parse_type, type_of
from lodestream.pipeline.gold.zeros import has_zeros

# Functions that can make a floating-point number of values that are none.
_MAKING_FLOATS = frozenset(
    """
    acos acosh aggregate approx_top_k_estimate asin asinh atan atan2 atanh bround cbrt ceil ceiling cos cosh cot csc
    degrees double e exp expm1 float floor from_avro from_csv from_json from_protobuf from_xml get_json_object hypot
    kll_sketch_get_quantile_double kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double
    kll_sketch_get_rank_float ln log log10 log1p log2 mod months_between nanvl negative parse_json pi pmod positive pow
    power radians reduce rint round sec sign signum sin sinh sqrt tan tanh to_variant_object transform transform_keys
    transform_values try_add try_divide try_mod try_multiply try_parse_json try_subtract try_variant_get variant_get
    xpath_double xpath_float xpath_number zip_with map_zip_with
    """.split()  # noqa: SIM905 (a list would take a line a name)
)
_EXACT = (ROW_WISE | TIME_WINDOWS) - _MAKING_FLOATS
_TRANSPARENT = (exp.Paren, exp.Case, exp.If, exp.Coalesce, exp.Dot, exp.DPipe, exp.Identifier, exp.Null, exp.Var)
# Given equal values, their results are equal as well.
_COMPARING = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Is, exp.Connector, exp.Not)
_KEEPING = (*_COMPARING, exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs, exp.Floor, exp.Ceil, exp.Paren, exp.Dot)


def keeps_equal(node: exp.Expr) -> bool:
    """Whether the operation gives equal values for equal ones, though -0.0 be among them."""
    if isinstance(node, exp.Cast):
        return parse_type(node.to) is not None  # a number or a truth value
    return isinstance(node, _KEEPING)


def all_alike(scope: Scope, tree: exp.Expr, kinds: Kinds) -> bool:
    """Whether equal values of the expression cannot be told apart by anything: it holds no floating-point number."""
    if isinstance(tree, exp.Column):
        return _column_alike(scope, tree, kinds)
    kind = type_of(tree, lambda column: kinds.type(scope, column))
    if kind is not None:
        return not kind.floating
    if isinstance(tree, exp.Literal):
        return bool(tree.is_string)
    if isinstance(tree, exp.Cast):
        return not has_zeros(tree.to.sql("spark"))
    if not (isinstance(tree, _TRANSPARENT) or call(tree) in _EXACT):
        return False
    return all(all_alike(scope, child, kinds) for child in tree.iter_expressions())


def _column_alike(scope: Scope, column: exp.Column, kinds: Kinds) -> bool:
    source = next((one for one in scope.sources if one.alias == column.table), None)
    if source is None or column.name not in source.columns:
        return False
    if source.table is not None:
        declared = kinds.declared(scope, column)
        return declared is not None and not has_zeros(declared)
    place = source.columns.index(str(column.name))
    return all(all_alike(branch, branch.items[place].piece.tree, kinds) for branch in source.branches)
