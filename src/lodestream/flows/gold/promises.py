"""What a Gold table promises its readers: the staged rows are held against it, and not published when they break it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from pyspark.sql import Row
from pyspark.sql.functions import col, count, count_distinct, count_if, expr, lit, struct
from pyspark.sql.types import DataType, StructType

from lodestream.contracts import Contract, Violation
from lodestream.contracts.violations import Violation as Condition
from lodestream.contracts.violations import taken
from lodestream.errors import ContractViolation, DeclarationError
from lodestream.names import in_files_only
from lodestream.pipeline import Table
from lodestream.pipeline.gold.plan import GoldPlan
from lodestream.tables.lake import Lake
from lodestream.tables.snapshot import Snapshot

log = logging.getLogger(__name__)


class Promises:
    """The contract and the expectations of one Gold table. There are no dead letters here: a batch holds, or stops."""

    def __init__(self, lake: Lake, table: Table, contract: Contract | None, proven: Sequence[str]) -> None:
        self._lake = lake
        self._name = table.name
        self._contract = contract
        refusing = list(contract.violations()) if contract else []
        warning = list(contract.warnings()) if contract else []
        for one in table.expectations:
            broken = Condition(f"expect: {one.name}", f"NOT coalesce(({one.sql}\n), false)", action=one.action)
            (warning if one.action == "warn" else refusing).append(broken)
        self._refusing: tuple[Violation, ...] = tuple(refusing)
        self._warning: tuple[Violation, ...] = tuple(warning)
        keys = contract.keys if contract else ()
        self._unique = () if proven and set(proven) <= set(keys) else keys
        self._alone = contract.unique_besides(keys) if contract else ()

    @classmethod
    def of(cls, lake: Lake, table: Table, contract: Contract | None, plan: GoldPlan | None) -> Promises | None:
        if contract is None and not table.expectations:
            return None
        # Groups are one row per key by construction.
        proven = plan.keys if plan is not None and plan.shape == "groups" else ()
        return cls(lake, table, contract, proven)

    def fit(self, schema: StructType) -> None:
        """Raise when the query gives other columns or types than the contract states."""
        if self._contract is None:
            return
        made = {field.name: field.dataType.simpleString() for field in schema if not in_files_only(field.name)}
        asked = {field.name: _plain(field.type) for field in self._contract}
        wrong = [f"{name} is missing" for name in asked if name not in made]
        wrong += [f"{name} is not in the contract" for name in made if name not in asked]
        wrong += [f"{n} is {made[n]}, not {t}" for n, t in asked.items() if n in made and made[n] != t]
        if wrong:
            raise DeclarationError(
                f"{self._name} does not fit its contract {self._contract.title}",
                why="; ".join(wrong),
                fix="name and cast the columns in the query as the contract says, or change the contract",
            )

    def hold(self, snapshot: Snapshot) -> Mapping[str, int]:
        """Look at the staged rows once; raise `ContractViolation`, or give what is worth counting."""
        found = self._counted(snapshot)
        rows, batch = int(found["rows"]), snapshot.stamp.batch if snapshot.stamp else 0
        broken = {
            one.reason: int(found[f"r{n}"])
            for n, one in enumerate(self._refusing)
            if 100 * int(found[f"r{n}"]) > rows * (one.threshold.percent if one.threshold else 0)
        }
        if self._unique and int(found["keys"]) < rows:
            broken[f"{', '.join(self._unique)} is not unique"] = rows - int(found["keys"])
        doubled = {taken(name): int(found[f"u{n}"]) for n, name in enumerate(self._alone)}
        broken |= {reason: number for reason, number in doubled.items() if number}
        if broken:
            raise self._violation(batch, rows, max(int(found["refused"]), *broken.values()), broken)
        warned = {one.reason: int(found[f"w{n}"]) for n, one in enumerate(self._warning) if found[f"w{n}"]}
        for reason, number in warned.items():
            log.warning("contract.warned table=%s batch=%s rows=%s reason=%r", self._name, batch, number, reason)
        return {"warned": max(warned.values())} if warned else {}

    def _counted(self, snapshot: Snapshot) -> Row:
        counted = [count(lit(1)).alias("rows")]
        counted += [count_if(expr(one.sql)).alias(f"r{n}") for n, one in enumerate(self._refusing)]
        counted += [count_if(expr(one.sql)).alias(f"w{n}") for n, one in enumerate(self._warning)]
        either = " OR ".join(f"({one.sql})" for one in self._refusing) or "false"
        counted.append(count_if(expr(either)).alias("refused"))
        if self._unique:
            counted.append(count_distinct(struct(*[col(f"`{key}`") for key in self._unique])).alias("keys"))
        for n, name in enumerate(self._alone):
            value = col(f"`{name}`")
            counted.append((count(value) - count_distinct(value)).alias(f"u{n}"))
        return self._lake.whole(self._name, snapshot.id).agg(*counted).collect()[0]

    def _violation(self, batch: int, rows: int, refused: int, broken: Mapping[str, int]) -> ContractViolation:
        said = ", ".join(_said(reason, number) for reason, number in broken.items())
        asks = f"contract {self._contract.title} requires it" if self._contract else "the table expects it"
        share = _share(refused, rows)
        return ContractViolation(
            f"{self._name} refused {refused:,} of {rows:,} rows in batch {batch} ({share} %, limit 0 %)",
            why=f"{said}; {asks}",
            fix="correct the query, its inputs or the contract; readers still see the batch before",
            table=self._name,
            batch=batch,
            rows=rows,
            refused=refused,
            reasons=dict(broken),
        )


def _said(reason: str, number: int) -> str:
    rows = f"{number:,} row{'' if number == 1 else 's'}"
    kind, _, name = reason.partition(": ")
    return f"{name!r} does not hold in {rows}" if kind in ("rule", "expect") else f"{reason} in {rows}"


def _share(part: int, whole: int) -> str:
    percent = 100 * part / whole if whole else 100.0
    return f"{percent:.0f}" if percent >= 10 or percent == int(percent) else f"{percent:.2g}"


def _plain(kind: str) -> str:
    """A type as Spark writes it."""
    return str(DataType.fromDDL(kind).simpleString())
