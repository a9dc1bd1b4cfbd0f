"""The lease of a run: taken before the first batch, renewed while it lives, given back at its end."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

from lodestream.config import Config
from lodestream.errors import AlreadyRuns, LodeError
from lodestream.observe import EventLog, LeaseMissing
from lodestream.runtime.catalogs import catalog_kind, has_local_files
from lodestream.tables.heads import heads_of
from lodestream.tables.lake import Lake
from lodestream.tables.lease import TABLE, Holder, Lease, pages_of, refuse_second
from lodestream.tables.lease_book import IcebergLeaseBook

# For tests of the one rule, which needs no lease: two drivers meet only where the first does not keep the second away.
_OFF = os.environ.get("LODE_LEASE") == "off"
_RELEASE_SECONDS = 5.0

# Told which tables another run keeps from now on; answers those whose flow has ended.
GiveWay = Callable[[Mapping[str, LodeError]], Sequence[str]]


def refuse_early(config: Config, tables: Sequence[str]) -> None:
    """Say who runs before Spark is started for nothing. What cannot be read yet is left to the lease itself."""
    if _OFF:
        return
    try:
        properties = _properties(config)
    except (LodeError, OSError, ValueError, KeyError, TypeError):
        return
    refuse_second(pages_of(properties), tables, time.time())


def _properties(config: Config) -> Mapping[str, str]:
    """Of the table of leases. Where catalog and tables are local files, in a millisecond: every start waits for it."""
    heads = heads_of(config)
    if heads is not None:
        location = (heads.look() or {}).get(TABLE)
        if location is None:
            return {}
        if has_local_files(config):
            stored = json.loads(Path(location.removeprefix("file:")).read_text(encoding="utf-8"))
            return dict(stored["properties"])
    from lodestream.tables.inspect import Inspector

    view = Inspector(config).look(TABLE)
    return dict(view.table.properties) if view is not None else {}


class RunLease:
    """A catalog that does not answer delays the lease, not the run: its flows wait for the catalog themselves."""

    def __init__(self, config: Config, spark: SparkSession, run: str, tables: Sequence[str]) -> None:
        lake = Lake(spark.newSession(), config.catalog.name)
        self._lease = Lease(IcebergLeaseBook(lake, settle=catalog_kind(config).settle), run)
        self._tables = tuple(tables)
        self._trouble: Exception | None = None
        self._taking: threading.Thread | None = None
        self._over = False
        self._leaving: dict[str, LodeError] = {}

    def begin(self, *, over: bool) -> None:
        """Take it on a thread of its own, while the flows are being made; `taken` waits for it."""
        self._over = over
        self._taking = threading.Thread(target=self._take, name="lode-lease-taken", daemon=True)
        self._taking.start()

    def taken(self) -> None:
        """Raises `AlreadyRuns`."""
        while self._taking is not None and self._taking.is_alive():
            self._taking.join(0.2)  # in slices, so that Ctrl-C is heard
        if isinstance(self._trouble, AlreadyRuns):
            raise self._trouble

    def _take(self) -> None:
        if _OFF:
            return
        try:
            self._lease.take(self._tables, over=self._over)
        except Exception as trouble:  # also a catalog that forbids us to make the table: the one rule is still there
            self._trouble = trouble

    def report(self, events: EventLog) -> None:
        if self._trouble is not None:
            said = str(self._trouble).splitlines()
            events.emit(LeaseMissing(error=type(self._trouble).__name__, what=said[0] if said else ""))

    def renew(self, give_way: GiveWay) -> None:
        """Say that we live. What another run takes over is told to `give_way`, and freed when its batch has ended."""
        if _OFF:
            return
        if self._trouble is not None:
            self._take_late(give_way)
            return
        heard = self._lease.renew()
        gone = {**heard.asked, **heard.lost}
        self._leaving |= {name: _taken_over(name, holder) for name, holder in gone.items()}
        if self._leaving:
            # Who asked may have died since: a flow that gave way is gone all the same, and so must its lease be.
            freed = give_way(self._leaving)
            self._lease.release(freed)
            self._leaving = {name: error for name, error in self._leaving.items() if name not in freed}

    def release(self) -> None:
        """Free the tables for the next run. A catalog that does not answer costs the end of this one a moment."""
        thread = threading.Thread(target=self._release, name="lode-release", daemon=True)
        thread.start()
        thread.join(_RELEASE_SECONDS)

    def _release(self) -> None:
        if self._taking is not None:
            self._taking.join()  # a run that ends while it begins must not leave one behind
        with suppress(Exception):  # it runs out by itself
            self._lease.release()

    def _take_late(self, give_way: GiveWay) -> None:
        try:
            self._lease.take(self._tables, over=self._over)
            self._trouble = None
        except AlreadyRuns as refused:
            give_way(dict.fromkeys(self._tables, refused))
            self._trouble = None


def _taken_over(table: str, holder: Holder) -> AlreadyRuns:
    return AlreadyRuns(
        f"{table} was taken over by another driver",
        why=holder.shown(),
        fix="nothing, if that was meant: it goes on where this run ended",
    )
