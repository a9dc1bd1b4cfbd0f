"""Feed rows: what a set of changes does to the rows of their keys, the last change winning, and what feed rows tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import (
    array,
    array_compact,
    col,
    collect_list,
    collect_set,
    count_if,
    explode,
    expr,
    lit,
    struct,
    when,
)
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from lodestream.contracts.quoting import name as quoted
from lodestream.flows.batch import Facts
from lodestream.flows.columns.pruning import Pruning
from lodestream.flows.columns.shape import partition_columns
from lodestream.names import ORDER, ORDER_KEY, WEIGHT
from lodestream.tables.find import EXACT, MOST_KEYS
from lodestream.tables.groupable import same_values
from lodestream.tables.hidden import GONE
from lodestream.tables.snapshot import Snapshot

_SIDE, _ROW = "_lode_x_side", "_lode_x_row"
# Where a stored row lies in the table: it goes with the row's -1, and with the +1 that replaces it; told, not written.
AT = "_lode_x_at"
_NOWHERE = "struct<file:string,pos:bigint>"
_CHANGE, _STORED, _MARK = 0, 1, 2


def upserted(
    changes: DataFrame, known: DataFrame | None, marks: DataFrame | None, keys: Sequence[str], columns: Sequence[str]
) -> DataFrame:
    """Feed rows for `changes` (columns and the order key) over the stored rows and the marks of the same keys.

    An update is -1 and +1, a delete -1. Weight 0 remembers a change that no row shows: a delete, so that an older
    change which comes later loses to it, and an update that changed nothing.
    """
    row = struct(*[col(quoted(one)) for one in columns])
    sides = [_side(changes, _CHANGE, keys, row, col(ORDER_KEY))]
    if known is not None:
        sides.append(_side(known, _STORED, keys, row, col(ORDER)))
    if marks is not None:
        nothing = lit(None).cast(sides[0].schema[_ROW].dataType)
        sides.append(_side(marks, _MARK, keys, nothing, col(ORDER)))
    together = sides[0]
    for side in sides[1:]:
        together = together.unionByName(side)
    grouped = together.groupBy(*map(quoted, keys)).agg(
        expr(f"max_by(struct({ORDER_KEY}, {_ROW}), {ORDER_KEY}) FILTER (WHERE {_SIDE} = {_CHANGE})").alias(
            "_lode_x_new"
        ),
        expr(f"max_by(struct({ORDER_KEY}, {_ROW}, {AT}), {ORDER_KEY}) FILTER (WHERE {_SIDE} = {_STORED})").alias(
            "_lode_x_old"
        ),
        expr(f"max({ORDER_KEY}) FILTER (WHERE {_SIDE} = {_MARK})").alias("_lode_x_mark"),
    )
    newer = expr(
        f"_lode_x_new IS NOT NULL AND (_lode_x_old IS NULL OR _lode_x_new.{ORDER_KEY} > _lode_x_old.{ORDER_KEY})"
        f" AND (_lode_x_mark IS NULL OR _lode_x_new.{ORDER_KEY} > _lode_x_mark)"
    )
    same = (
        col("_lode_x_old").isNotNull()
        & ~col(f"_lode_x_new.{ORDER_KEY}.{GONE}")
        & same_rows(grouped, f"_lode_x_new.{_ROW}", f"_lode_x_old.{_ROW}")
    )
    decided = grouped.where(newer).withColumn("_lode_x_same", same)
    return fed(decided, _weighted(keys, columns, grouped), columns)


def fed(decided: DataFrame, weighted: Sequence[Column], columns: Sequence[str]) -> DataFrame:
    """One row per weight that is not null."""
    lines = decided.select(explode(array_compact(array(*weighted))).alias("_lode_x_line"))
    named = [col(f"_lode_x_line.{_ROW}.{quoted(one)}").alias(one) for one in columns]
    told = [
        col(f"_lode_x_line.{ORDER_KEY}").alias(ORDER),
        col(f"_lode_x_line.{WEIGHT}").alias(WEIGHT),
        col(f"_lode_x_line.{AT}").alias(AT),
    ]
    return lines.select(*named, *told)


def line(weight: int, order_key: Column, row: Column, at: Column | None = None) -> Column:
    nowhere = lit(None).cast(_NOWHERE)
    return struct(
        lit(weight).alias(WEIGHT),
        order_key.alias(ORDER_KEY),
        row.alias(_ROW),
        (nowhere if at is None else at).alias(AT),
    )


def at(frame: DataFrame) -> Column:
    """Where the rows of a frame lie; null when they are no stored ones."""
    return col(AT) if AT in frame.columns else lit(None).cast(_NOWHERE)


def same_rows(frame: DataFrame, one: str, other: str) -> Column:
    kind = frame.select(one).schema[0].dataType
    if _incomparable(kind):
        return same_values(col(one), col(other), kind)
    return col(one).eqNullSafe(col(other))


def _weighted(keys: Sequence[str], columns: Sequence[str], grouped: DataFrame) -> list[Column]:
    gone, existed = col(f"_lode_x_new.{ORDER_KEY}.{GONE}"), col("_lode_x_old").isNotNull()
    kinds = {field.name: field.dataType for field in grouped.select(f"_lode_x_new.{_ROW}.*").schema}
    only_keys = struct(
        *[(col(quoted(one)) if one in keys else lit(None).cast(kinds[one])).alias(one) for one in columns]
    )
    return [
        when(
            existed & ~col("_lode_x_same"),
            line(-1, col(f"_lode_x_old.{ORDER_KEY}"), col(f"_lode_x_old.{_ROW}"), col(f"_lode_x_old.{AT}")),
        ),
        when(
            ~gone & ~col("_lode_x_same"),
            line(1, col(f"_lode_x_new.{ORDER_KEY}"), col(f"_lode_x_new.{_ROW}"), col(f"_lode_x_old.{AT}")),
        ),
        when(gone | col("_lode_x_same"), line(0, col(f"_lode_x_new.{ORDER_KEY}"), only_keys)),
    ]


def _side(frame: DataFrame, side: int, keys: Sequence[str], row: Column, order_key: Column) -> DataFrame:
    return frame.select(
        *map(quoted, keys), lit(side).alias(_SIDE), row.alias(_ROW), order_key.alias(ORDER_KEY), at(frame).alias(AT)
    )


@dataclass(frozen=True, slots=True)
class FeedWatch:
    """What one feed snapshot holds, told while it is written, or by one small job.

    It says which facts to tell: by the first key, and by the partitions that rows lie in.
    """

    key: str
    partition_by: tuple[str, ...] = ()
    pruning: Pruning = field(default_factory=Pruning)
    exact: bool = True  # the first key is the same again after Python had it, so that rows can be looked for by it

    @classmethod
    def over(cls, key: str, partition_by: Sequence[str], schema: StructType) -> FeedWatch:
        pruning = Pruning.over(partition_columns(partition_by, schema.names), schema)
        return cls(key, tuple(partition_by), pruning, isinstance(schema[key].dataType, EXACT))

    def columns(
        self, *, few: bool, at: str | None = None, entry: Column | None = None, mark: Column | None = None
    ) -> list[Column]:
        went = col(WEIGHT) < 0
        found = [
            count_if(col(WEIGHT) > 0).alias("came"),
            count_if(went).alias("gone"),
            count_if(col(WEIGHT) == 0).alias("marks"),
        ]
        found += [count_if((col(WEIGHT) > 0) & col(at).isNotNull()).alias("replacing")] if at else []
        found += self.pruning.extent(f"{WEIGHT} < 0")
        if few and self.exact:
            found.append(collect_set(when(went, col(quoted(self.key)))).alias("replaced"))
        if few and at:
            found.append(collect_list(when(went, col(at))).alias("locations"))
        if few and entry is not None:
            found.append(collect_list(when(col(WEIGHT) > 0, entry)).alias("entries"))
        if few and mark is not None:
            found.append(collect_list(when(col(WEIGHT) == 0, mark)).alias("remembered"))
        return found

    def facts(self, told: Mapping[str, Any], state: int | None = None, marks_state: int | None = None) -> Facts:
        within = self.pruning.ranges(told)
        replaced, locations = (tuple(told.get(name) or ()) for name in ("replaced", "locations"))
        locations = tuple((one.file, one.pos) for one in locations)
        entries, remembered = (tuple(told.get(name) or ()) for name in ("entries", "remembered"))
        came, gone, marks, replacing = (int(told.get(name) or 0) for name in ("came", "gone", "marks", "replacing"))
        return Facts(
            came, gone, marks, replaced, within, locations, state, entries, remembered, marks_state, replacing
        )  # fmt: skip

    def look(self, rows: DataFrame, snapshot: Snapshot) -> Facts:
        if snapshot.added_rows == 0:
            return Facts()
        return self.facts(rows.agg(*self.columns(few=snapshot.added_rows <= MOST_KEYS)).collect()[0].asDict())


def _incomparable(kind: DataType) -> bool:
    """Whether Spark cannot say that two values are equal: of maps and variants."""
    if isinstance(kind, StructType):
        return any(_incomparable(field.dataType) for field in kind)
    return _incomparable(kind.elementType) if isinstance(kind, ArrayType) else isinstance(kind, (MapType, VariantType))
