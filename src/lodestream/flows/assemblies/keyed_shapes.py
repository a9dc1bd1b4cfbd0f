"""The columns of keyed tables, and the order key of a change beside them: from the declared rows over empty inputs."""

from __future__ import annotations

from pyspark.sql.types import BooleanType, LongType, StructField, StructType

from lodestream.errors import DeclarationError
from lodestream.flows.judging.terms import Terms
from lodestream.names import BATCH, CARRIED, FILTERED, IS_CURRENT, ORDER_KEY, REASONS, VALID_FROM, VALID_TO, WARNED
from lodestream.tables.hidden import GONE

_HIDDEN = frozenset((CARRIED, REASONS, FILTERED, WARNED))


def keyed_shape(terms: Terms) -> StructType:
    terms.check_keys(terms.contract or terms.rows.as_contract())
    return _judged(terms)


def _judged(terms: Terms) -> StructType:
    judged = terms.judge.conformed(terms.rows.shape())
    return StructType([field for field in judged.schema if field.name not in _HIDDEN])


def derived_shape(terms: Terms, followed: str) -> StructType:
    kept = _judged(terms)
    missing = set(terms.keys) - set(kept.names)
    if missing:
        raise DeclarationError(
            f"{terms.name} lacks {', '.join(sorted(missing))}, the key of {followed}",
            why="a row that changes there must be found here",
            fix="keep the key columns in the function's result",
        )
    order_key = StructType([StructField(BATCH, LongType()), StructField(GONE, BooleanType())])
    return StructType([*kept, StructField(ORDER_KEY, order_key)])


def version_shape(terms: Terms) -> StructType:
    """`valid_from` is the first `sequence_by` column; `valid_to` is that of the next change, null while none is."""
    shape = keyed_shape(terms)
    order_key = shape[ORDER_KEY].dataType
    if not isinstance(order_key, StructType) or "by_0" not in order_key.names:
        raise DeclarationError(
            f"{terms.name} keeps a history and has no sequence_by",
            why="nothing says from when on a row is valid: its input has no broker timestamp either",
            fix="add sequence_by= with the column that orders the changes of a key",
        )
    taken = {VALID_FROM, VALID_TO, IS_CURRENT} & set(shape.names)
    if taken:
        raise DeclarationError(
            f"{terms.name} gives {', '.join(sorted(taken))} itself",
            why="history=True adds valid_from, valid_to and is_current",
            fix="rename these columns in the function or the contract",
        )
    moment = order_key["by_0"].dataType
    added = [
        StructField(VALID_FROM, moment), StructField(VALID_TO, moment), StructField(IS_CURRENT, BooleanType())
    ]  # fmt: skip
    own = [field for field in shape if field.name != ORDER_KEY]
    return StructType([*own, *added, shape[ORDER_KEY]])
