"""A reference file held against what its table declares, before it replaces anything: it holds as a whole, or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.functions import (
    col,
    collect_list,
    count,
    count_distinct,
    count_if,
    explode,
    length,
    lit,
    monotonically_increasing_id,
    size,
    sort_array,
    struct,
    to_json,
)
from pyspark.sql.functions import max as highest
from pyspark.sql.functions import min as least
from pyspark.sql.functions import slice as slice_of

from lodestream.contracts import Contract
from lodestream.contracts.quoting import name as quoted
from lodestream.contracts.refusal import unloadable
from lodestream.contracts.violations import hidden, taken
from lodestream.errors import SourceUnreadable
from lodestream.flows.judging.judge import Judge
from lodestream.names import CARRIED, FILTERED, REASONS, WARNED
from lodestream.sources.reference.lines import KEEPS
from lodestream.sources.reference.reader import ReferenceReader

_MOST = 3
_NUMBER = "_lode_x_number"


def checked(
    table: str,
    file: ReferenceReader,
    rows: DataFrame,
    contract: Contract | None,
    keys: Sequence[str],
    sequence: Sequence[str],
) -> DataFrame:
    """The rows as the table keeps them, masked as the contract says.

    Raises `ContractViolation` when a row breaks the contract or two rows have one key, and `SourceUnreadable`.
    """
    judge = Judge(table, contract, keys=keys)
    judged = judge.conformed(rows.withColumn(CARRIED, struct(*map(quoted, rows.columns))))
    identity = [col(quoted(name)) for name in (*keys, *sequence)]
    alone = contract.unique_besides(keys) if contract and not sequence else ()
    counts = [count(lit(1)).alias("rows"), count_if(size(REASONS) > 0).alias("refused")]
    # Every column is read: a value that does not fit must fail here, where it is explained, and not when it is written.
    counts.append(highest(length(to_json(CARRIED))).alias("whole"))
    # In a struct, because a missing date counts as well.
    counts += [count_distinct(struct(*identity)).alias("identities")] if keys else []
    counts += [(count(quoted(one)) - count_distinct(quoted(one))).alias(f"u_{one}") for one in alone]
    try:
        seen = judged.agg(*counts).collect()[0]
    except Exception as error:
        # Some failures of a task come as they are, others as errors of PySpark.
        raise _unfit(table, file, contract, error) from error
    doubled: dict[tuple[str, ...], int] = {(one,): int(seen[f"u_{one}"]) for one in alone}
    if keys:
        doubled[(*keys, *sequence)] = int(seen["rows"] - seen["identities"])
    doubled = {columns: number for columns, number in doubled.items() if number}
    if seen["refused"] or doubled:
        numbered = judge.conformed(_numbered(rows))
        refusals = [*(_reasons(numbered, file) if seen["refused"] else []), *_doubles(numbered, doubled, file)]
        reasons = {one.reason: one.rows for one in refusals}
        refused = max(int(seen["refused"]), *reasons.values())
        where = {one.reason: one.where for one in refusals}
        raise unloadable(table, contract, file.path.name, int(seen["rows"]), refused, reasons, where)
    return judged.drop(CARRIED, REASONS, FILTERED, WARNED)


@dataclass(frozen=True, slots=True)
class _Refusal:
    reason: str
    rows: int
    where: str


def _numbered(rows: DataFrame) -> DataFrame:
    """The rows with their numbers in the file. One task reads it then: small, and only to say where it is wrong."""
    number = monotonically_increasing_id().alias(_NUMBER)
    return rows.coalesce(1).withColumn(CARRIED, struct(*map(quoted, rows.columns), number))


def _reasons(numbered: DataFrame, file: ReferenceReader) -> list[_Refusal]:
    told = numbered.select(explode(REASONS).alias("reason"), col(f"{CARRIED}.{_NUMBER}").alias(_NUMBER))
    grouped = told.groupBy("reason").agg(count(lit(1)).alias("rows"), least(_NUMBER).alias("first"))
    found = grouped.orderBy(col("rows").desc(), "reason").limit(_MOST).collect()
    lines = file.where([row["first"] for row in found])
    several = {row["reason"]: "first in " if row["rows"] > 1 else "" for row in found}
    return [
        _Refusal(row["reason"], row["rows"], f"{several[row['reason']]}{lines.get(row['first'], '')}") for row in found
    ]


def _doubles(numbered: DataFrame, doubled: Mapping[tuple[str, ...], int], file: ReferenceReader) -> list[_Refusal]:
    """One value that comes twice, for each of the columns that may not, as the table would store it."""
    found = []
    for columns, rows in doubled.items():
        value = struct(*[col(quoted(name)) for name in columns])
        numbers = slice_of(sort_array(collect_list(col(f"{CARRIED}.{_NUMBER}"))), 1, 2)
        there = numbered.where(col(quoted(columns[0])).isNotNull())  # no value is no value twice
        same = there.groupBy(value.alias("value")).agg(numbers.alias("at"))
        one = same.where(size("at") > 1).orderBy("at").select(to_json("value").alias("value"), "at").first()
        lines = [*file.where(one["at"]).values()] if one else []
        shown = f"{one['value']} in {' and '.join(lines)}" if one and lines else ""
        found.append(_Refusal(taken(", ".join(columns)), rows, shown))
    return found


def _unfit(table: str, file: ReferenceReader, contract: Contract | None, error: Exception) -> SourceUnreadable:
    """By line, column and value, where the file still shows them: Spark's own words name none."""
    found = unreadable(table, file.path.name, error)
    try:
        faults = file.faults([field.name for field in contract.fields if hidden(field)] if contract else ())
    except Exception:
        return found
    if faults:
        found.why = "; ".join(faults)
    return found


def unreadable(table: str, file: str, error: Exception) -> SourceUnreadable:
    lines = [line.strip() for line in str(error).splitlines()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return SourceUnreadable(
        f"{table}: {file} cannot be read",
        why=(causes or lines)[-1 if causes else 0],
        fix=f"correct the file, or the columns that are declared for it; {KEEPS}",
    )
