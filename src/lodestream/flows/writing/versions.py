"""What a set of changes does to the versions of their keys, as feed rows: a late change splits an interval."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql.functions import coalesce, col, expr, lead, lit, struct, when

from lodestream.contracts.quoting import name as quoted
from lodestream.flows.writing.upserts import AT, at, fed, line, same_rows
from lodestream.names import IS_CURRENT as CURRENT
from lodestream.names import ORDER, ORDER_KEY
from lodestream.names import VALID_FROM as FROM
from lodestream.names import VALID_TO as TO
from lodestream.tables.hidden import GONE

_SIDE, _ROW, _WAS = "_lode_x_side", "_lode_x_row", "_lode_x_was"
_FACTS = ("_lode_x_new", "_lode_x_old", "_lode_x_newer", "_lode_x_same", "_lode_x_alive")
_CHANGE, _STORED, _MARK = 0, 1, 2


def versioned(
    changes: DataFrame, known: DataFrame | None, marks: DataFrame | None, keys: Sequence[str], own: Sequence[str]
) -> DataFrame:
    """Feed rows over all stored versions and marks of the changed keys.

    Every moment at which a key changed is a border, deletes included; between two borders stands at most one version.
    """
    borders = _borders(_together(changes, known, marks, keys, own), keys)
    following = Window.partitionBy(*map(quoted, keys)).orderBy(FROM)
    ended = borders.withColumn(TO, lead(FROM).over(following))
    decided = ended.where(_touched()).select(
        *map(quoted, keys), FROM, *_FACTS, _version(own, col("_lode_x_alive"), TO),
        _version(own, col(f"_lode_x_old.{_ROW}"), f"_lode_x_old.{_WAS}").alias("_lode_x_stored"),
    )  # fmt: skip
    return fed(decided, _weighted(decided, keys, own), [*own, FROM, TO, CURRENT])


def _together(
    changes: DataFrame, known: DataFrame | None, marks: DataFrame | None, keys: Sequence[str], own: Sequence[str]
) -> DataFrame:
    row = struct(*[col(quoted(one)) for one in own])
    together = _side(changes, _CHANGE, keys, col(f"{ORDER_KEY}.by_0"), row, col(ORDER_KEY))
    if known is not None:
        together = together.unionByName(_side(known, _STORED, keys, col(FROM), row, col(ORDER), col(TO)))
    if marks is not None:
        nothing = lit(None).cast(together.schema[_ROW].dataType)
        together = together.unionByName(_side(marks, _MARK, keys, col(f"{ORDER}.by_0"), nothing, col(ORDER)))
    return together


def _borders(together: DataFrame, keys: Sequence[str]) -> DataFrame:
    """One row per key and moment: the newest change, the stored version, and the version that stands there now."""
    grouped = together.groupBy(*map(quoted, keys), FROM).agg(
        expr(f"max_by(struct({ORDER_KEY}, {_ROW}), {ORDER_KEY}) FILTER (WHERE {_SIDE} = {_CHANGE})").alias(
            "_lode_x_new"
        ),
        expr(
            f"max_by(struct({ORDER_KEY}, {_ROW}, {_WAS}, {AT}), {ORDER_KEY}) FILTER (WHERE {_SIDE} = {_STORED})"
        ).alias("_lode_x_old"),
        expr(f"max({ORDER_KEY}) FILTER (WHERE {_SIDE} = {_MARK})").alias("_lode_x_mark"),
    )
    newer = expr(
        f"_lode_x_new IS NOT NULL AND (_lode_x_old IS NULL OR _lode_x_new.{ORDER_KEY} > _lode_x_old.{ORDER_KEY})"
        f" AND (_lode_x_mark IS NULL OR _lode_x_new.{ORDER_KEY} > _lode_x_mark)"
    )
    equal = same_rows(grouped, f"_lode_x_new.{_ROW}", f"_lode_x_old.{_ROW}")
    judged = grouped.withColumn("_lode_x_newer", newer).withColumn(
        "_lode_x_same",
        col("_lode_x_newer") & col("_lode_x_old").isNotNull() & ~col(f"_lode_x_new.{ORDER_KEY}.{GONE}") & equal,
    )
    # A stored version is there because nothing newer deletes it, so only a newer change takes its place.
    alive = when(
        col("_lode_x_newer"), when(~col(f"_lode_x_new.{ORDER_KEY}.{GONE}"), col(f"_lode_x_new.{_ROW}"))
    ).otherwise(col(f"_lode_x_old.{_ROW}"))
    return judged.withColumn("_lode_x_alive", alive)


def _touched() -> Column:
    """Borders at which something changes: a newer change, or a version that now ends elsewhere."""
    return col("_lode_x_newer") | (col("_lode_x_old").isNotNull() & ~col(TO).eqNullSafe(col(f"_lode_x_old.{_WAS}")))


def _version(own: Sequence[str], row: Column, end: str) -> Column:
    """A version as the table stores it; null when there is none."""
    fields = [row.getField(one).alias(one) for one in own]
    whole = struct(*fields, col(FROM).alias(FROM), col(end).alias(TO), col(end).isNull().alias(CURRENT))
    return when(row.isNotNull(), whole).alias("_lode_x_made")


def _weighted(decided: DataFrame, keys: Sequence[str], own: Sequence[str]) -> list[Column]:
    existed, stands = col("_lode_x_stored").isNotNull(), col("_lode_x_made").isNotNull()
    differs = ~same_rows(decided, "_lode_x_made", "_lode_x_stored")
    order_key = coalesce(
        when(col("_lode_x_newer") & ~col("_lode_x_same"), col(f"_lode_x_new.{ORDER_KEY}")),
        col(f"_lode_x_old.{ORDER_KEY}"),
    )
    kinds = {field.name: field.dataType for field in decided.select("_lode_x_made.*").schema}
    marked = {**{key: col(quoted(key)) for key in keys}, FROM: col(FROM)}
    only_keys = struct(*[marked.get(one, lit(None).cast(kinds[one])).alias(one) for one in [*own, FROM, TO, CURRENT]])
    return [
        when(
            existed & differs,
            line(-1, col(f"_lode_x_old.{ORDER_KEY}"), col("_lode_x_stored"), col(f"_lode_x_old.{AT}")),
        ),
        when(stands & differs, line(1, order_key, col("_lode_x_made"), col(f"_lode_x_old.{AT}"))),
        when(
            col("_lode_x_newer") & (col("_lode_x_same") | col(f"_lode_x_new.{ORDER_KEY}.{GONE}")),
            line(0, col(f"_lode_x_new.{ORDER_KEY}"), only_keys),
        ),
    ]


def _side(
    frame: DataFrame, side: int, keys: Sequence[str], moment: Column, row: Column, order_key: Column,
    until: Column | None = None,
) -> DataFrame:  # fmt: skip
    was = until if until is not None else lit(None).cast(frame.select(moment).schema[0].dataType)
    return frame.select(
        *map(quoted, keys), lit(side).alias(_SIDE), moment.alias(FROM), row.alias(_ROW), order_key.alias(ORDER_KEY),
        was.alias(_WAS), at(frame).alias(AT),
    )  # fmt: skip
