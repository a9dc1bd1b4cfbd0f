# ruff: noqa: S608 - SQL is what this module makes, from the user's own text
"""Delta for queries that give a row per row: the changed rows pass through the query with their weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from lodestream.names import WEIGHT
from lodestream.pipeline.gold.functions import called_in
from lodestream.pipeline.gold.pieces import quoted
from lodestream.pipeline.gold.plan import BOTH, DELTA, NEGATIVE, STORED, NotProvableError
from lodestream.pipeline.gold.query import Query
from lodestream.pipeline.gold.stream import Stream, refuse_neighbours, the_stream
from lodestream.pipeline.gold.weighted import selecting, weight_of
from lodestream.pipeline.gold.zeros import has_zeros, zero_sign

_MAPS = frozenset(
    """
    map map_concat map_filter map_from_arrays map_from_entries map_zip_with parse_json str_to_map to_variant_object
    transform_keys transform_values try_parse_json variant_get
    """.split()  # noqa: SIM905 (a list would take a line a name)
)
_UNGROUPABLE = ("map<", "variant", "geometry", "geography")


@dataclass(frozen=True, slots=True)
class Rows:
    query: Query
    stream: Stream


def prove_rows(query: Query) -> Rows:
    stream = the_stream(query)
    refuse_neighbours(query.top)
    if query.top.distinct:
        raise NotProvableError("DISTINCT over window functions cannot be counted back")
    for item in query.outputs:
        if item.piece.tree.find(exp.Query) is not None:
            raise NotProvableError(f"{item.name} is a subquery of its own", "join the table instead")
        if not _MAPS.isdisjoint(called_in(item.piece.tree)):
            raise NotProvableError(f"rows with {item.name} cannot be compared", "turn it into JSON text: to_json(...)")
    info = query.info(stream.source)
    for name, kind in (info.columns if info else {}).items():
        if kind and any(word in kind.lower() for word in _UNGROUPABLE) and _mentions(query, name):
            raise NotProvableError(f"rows with {name} ({kind}) cannot be compared", "turn it into JSON text in Silver")
    return Rows(query, stream)


def _mentions(query: Query, name: str) -> bool:
    columns = (column for item in query.outputs for column in item.piece.tree.find_all(exp.Column))
    return any(column.name == name.lower() for column in columns)


def rows_delta_sql(rows: Rows) -> str:
    items = [f"{item.piece.text} AS {quoted(item.name)}" for item in rows.query.outputs]
    return selecting(rows.query, [*items, weight_of(rows.stream)], rows.stream)


def rows_both_sql(rows: Rows) -> str:
    """The stored rows, each once, and the changed ones with their weight."""
    columns = ", ".join(quoted(name) for name in rows.query.columns)
    return f"SELECT {columns}, 1 AS {WEIGHT} FROM {STORED} UNION ALL SELECT {columns}, {WEIGHT} FROM {DELTA}"


def rows_fold_sql(columns: Sequence[str], kinds: Mapping[str, str] | None = None) -> str:
    """Stored rows plus changed rows, equal ones cancelling out. Each surviving row comes as often as it weighs.

    `kinds` are the columns' types where they are known: floating-point numbers are compared to the sign of a zero.
    """
    names = {name: quoted(name) for name in columns}
    signed = {names[name]: kind for name, kind in (kinds or {}).items() if has_zeros(kind)}
    listed = ", ".join(names.values())
    same = ", ".join([listed, *(zero_sign(name, kind) for name, kind in signed.items())])
    values = ", ".join(f"FIRST({name}) AS {name}" if name in signed else name for name in names.values())
    counted = f"SELECT {values}, SUM({WEIGHT}) AS {WEIGHT} FROM {BOTH} GROUP BY {same}"
    copies = f"EXPLODE(SEQUENCE(1, CAST({WEIGHT} AS INT))) AS _lode_copy"
    having = f"CASE WHEN SUM({WEIGHT}) < 0 THEN RAISE_ERROR('{NEGATIVE}') ELSE SUM({WEIGHT}) > 0 END"
    kept = f"SELECT {listed}, {copies} FROM ({counted} HAVING {having}) AS _lode_net"
    return f"SELECT {listed} FROM ({kept}) AS _lode_copies"
