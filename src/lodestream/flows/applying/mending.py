"""Give rows the order keys back that another tool's compaction has left out.

Such a tool writes the columns that it sees, and order keys are hidden. The feed has them: it is the truth.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, max

from lodestream.contracts.quoting import name as quoted
from lodestream.failpoints import reach
from lodestream.names import ORDER, WEIGHT, feed_of
from lodestream.tables.feed import applied
from lodestream.tables.hidden import is_part, shown, spread, unfiltered
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.lake import Lake
from lodestream.tables.notes import MENDED
from lodestream.tables.publish import Base, Moved
from lodestream.tables.rewrite import branch_head, rewrite_files
from lodestream.tables.store import Refused

log = logging.getLogger(__name__)
_FILE = "_lode_x_file"


def mend(lake: Lake, store: IcebergStore, base: Base, branch: str, identity: Sequence[str]) -> None:
    """After this the head of the table shows the order key of every row that the feed knows.

    All of it becomes visible in one step: a head with hidden columns is taken for one whose rows have them.
    """
    began = time.perf_counter()
    store.point(branch, base.head)
    rows = lake.whole(store.name, _renewed(store, branch)).select("*", col("_file").alias(_FILE))
    lost = _without_order(rows)
    files = [str(one[_FILE]) for one in rows.where(lost).select(_FILE).distinct().collect()]
    reach("mend.between", store.name)
    if files:
        fine = rows.where(col(_FILE).isin(files) & ~lost).drop(_FILE)
        mended = fine.unionByName(_found_again(lake, store, rows.where(lost).drop(_FILE), identity))
        rewrite_files(lake, store, files, mended, branch, MENDED, same=True)
    try:
        store.fast_forward(branch, branch_head(store, branch), base.main_version)
    except Refused:
        raise Moved(store.name) from None
    seconds = time.perf_counter() - began
    log.warning("order.restored table=%s files=%d seconds=%.1f", store.name, len(files), seconds)


def _renewed(store: IcebergStore, branch: str) -> int:
    """A snapshot through which the rows are read with their hidden columns, null where they were left out."""
    store.commit_empty(branch, MENDED)
    return branch_head(store, branch)


def _without_order(rows: DataFrame) -> Column:
    """No row of ours is without any part of an order key."""
    return reduce(and_, [unfiltered(part).isNull() for part in rows.columns if is_part(part)])


def _found_again(lake: Lake, store: IcebergStore, rows: DataFrame, identity: Sequence[str]) -> DataFrame:
    """The rows with the order key of the last change that gave them."""
    came = _applied_feed(lake, store).where(col(WEIGHT) > 0)
    last = came.groupBy(*map(quoted, identity)).agg(max(col(ORDER)).alias(ORDER))
    declared = shown(rows)
    named = [quoted(one) for one in declared.columns]
    return spread(declared.join(last, list(identity), "left").select(*named, ORDER))


def _applied_feed(lake: Lake, store: IcebergStore) -> DataFrame:
    feed = lake.store(feed_of(store.name))
    position = applied(store, feed.name)
    known = feed.snapshot(int(position["snapshot"])) if position else None
    return lake.whole(feed.name, known.id if known else None)
