"""A reference file held against what its table declares, before it replaces anything: it holds as a whole, or not."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, count, count_distinct, count_if, explode, length, lit, size, struct, to_json
from pyspark.sql.functions import max as highest

from lodestream.contracts import Contract
from lodestream.contracts.quoting import name as quoted
from lodestream.contracts.refusal import unloadable
from lodestream.contracts.violations import taken
from lodestream.errors import SourceUnreadable
from lodestream.flows.silver.judge import CARRIED, FILTERED, REASONS, WARNED, Judge

_MOST = 3


def checked(
    table: str, file: str, rows: DataFrame, contract: Contract | None, keys: Sequence[str], sequence: Sequence[str]
) -> DataFrame:
    """The rows as the table keeps them, masked as the contract says.

    Raises `ContractViolation` when a row breaks the contract or two rows have one place, and `SourceUnreadable`.
    """
    judged = Judge(table, contract, keys=keys).conformed(rows.withColumn(CARRIED, struct(*map(quoted, rows.columns))))
    identity = [col(quoted(name)) for name in (*keys, *sequence)]
    alone = contract.unique_besides(keys) if contract and not sequence else ()
    counts = [count(lit(1)).alias("rows"), count_if(size(REASONS) > 0).alias("refused")]
    # Every column is read: a value that does not fit must fail here, where it is explained, and not when it is written.
    counts.append(highest(length(to_json(CARRIED))).alias("whole"))
    # In a struct, because a missing date is a place as well.
    counts += [count_distinct(struct(*identity)).alias("places")] if keys else []
    counts += [(count(quoted(one)) - count_distinct(quoted(one))).alias(f"u_{one}") for one in alone]
    try:
        seen = judged.agg(*counts).collect()[0]
    except Exception as error:
        # Some failures of a task come as they are, others as errors of PySpark.
        raise unreadable(table, file, error) from error
    reasons = _reasons(judged) if seen["refused"] else {}
    doubled = {taken(one): int(seen[f"u_{one}"]) for one in alone}
    if keys:
        doubled[taken(", ".join([*keys, *sequence]))] = int(seen["rows"] - seen["places"])
    reasons |= {reason: number for reason, number in doubled.items() if number}
    if reasons:
        refused = max(int(seen["refused"]), *reasons.values())
        raise unloadable(table, contract, file, int(seen["rows"]), refused, reasons)
    return judged.drop(CARRIED, REASONS, FILTERED, WARNED)


def _reasons(judged: DataFrame) -> dict[str, int]:
    told = judged.select(explode(REASONS).alias("reason")).groupBy("reason").count()
    return {row["reason"]: row["count"] for row in told.orderBy(col("count").desc(), "reason").limit(_MOST).collect()}


def unreadable(table: str, file: str, error: Exception) -> SourceUnreadable:
    lines = [line.strip() for line in str(error).splitlines()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return SourceUnreadable(
        f"{table}: {file} cannot be read",
        why=(causes or lines)[-1 if causes else 0],
        fix="correct the file, or the columns that are declared for it; readers still see the rows before, and the "
        "next good version is taken by itself",
    )
