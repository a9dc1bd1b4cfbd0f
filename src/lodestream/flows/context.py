"""What the parts of one flow share: its table, the settings of its session, and what its log should say."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from lodestream.contracts import Contract
from lodestream.contracts.conform import unfilled
from lodestream.observe import ColumnUnfilled, Event
from lodestream.pipeline import Table
from lodestream.tables.lake import Lake

log = logging.getLogger(__name__)

SMALL = 20_000

# A batch of a thousand rows spends its time on planning, compiling and scheduling, not on rows: it runs interpreted, in
# one partition, without re-planning. A large one gets all of these back.
SMALL_BATCHES = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    # The text of each plan, for a user interface that nobody opens, costs as much as a look at the catalog.
    "spark.sql.ui.explainMode": "simple",
}


class Notices:
    """Events without a table: whoever runs the flow says which it is."""

    def __init__(self) -> None:
        self._waiting: list[Event] = []
        self._told: set[tuple[type[Event], str]] = set()

    def add(self, event: Event) -> None:
        self._waiting.append(event)

    def new(self, event: type[Event], names: Iterable[str]) -> list[str]:
        """Those of the names that this event was not told of yet; from now on they are."""
        found = [name for name in names if (event, name) not in self._told]
        self._told.update((event, name) for name in found)
        return found

    def take(self) -> list[Event]:
        """What was noticed since the last call."""
        taken, self._waiting = self._waiting, []
        return taken


class Unfilled:
    """Tells once of each column of a contract that nobody returns: it stays null for ever, and no row is refused."""

    def __init__(self, notices: Notices, table: str, contract: Contract | None) -> None:
        self._notices = notices
        self._table = table
        self._contract = contract
        self._looked_at: Sequence[str] = ()

    def tell(self, columns: Sequence[str]) -> None:
        if self._contract is None or columns == self._looked_at:
            return
        self._looked_at = columns
        news = self._notices.new(ColumnUnfilled, unfilled(self._contract, columns))
        if news:
            self._notices.add(ColumnUnfilled(columns=tuple(news), contract=self._contract.title))
            log.warning("column.unfilled table=%s columns=%s", self._table, ",".join(news))


class Tuning:
    """Keeps a flow's own session at the settings of its current batch."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._large = {key: spark.conf.get(key) for key in SMALL_BATCHES}
        self._small: bool | None = None

    def fit(self, rows: int) -> None:
        small = rows <= SMALL
        if small is self._small:
            return
        for key, value in (SMALL_BATCHES if small else self._large).items():
            self._spark.conf.set(key, value or "")
        self._small = small


@dataclass(frozen=True, slots=True)
class Context:
    """The lake's session belongs to this flow alone: its settings follow the size of each batch."""

    lake: Lake
    table: Table
    run: str
    notices: Notices
    tuning: Tuning

    @classmethod
    def of(cls, lake: Lake, table: Table, run: str) -> Context:
        return cls(lake, table, run, Notices(), Tuning(lake.spark))

    @property
    def name(self) -> str:
        return self.table.name
