"""From declarations to flows: which sources, which decoder, which tier's flow."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lodestream.config import Config
from lodestream.engine.contract_files import contract_files
from lodestream.errors import DeclarationError
from lodestream.flows.agreement import Agreement
from lodestream.flows.assemblies.bronze import bronze_flow
from lodestream.flows.assemblies.contracts import Agreed
from lodestream.flows.assemblies.gold import KeptGold, gold_table
from lodestream.flows.assemblies.keyed import derived_table, history_table, keyed_table
from lodestream.flows.assemblies.pulled import pulled_flow
from lodestream.flows.assemblies.reference import reference_flow
from lodestream.flows.assemblies.silver import silver_table
from lodestream.flows.assemblies.silver_table import SilverTable
from lodestream.flows.code.declared import DeclaredInputs
from lodestream.flows.context import SMALL_BATCHES
from lodestream.flows.flow import Flow
from lodestream.flows.gold.table import GoldInput
from lodestream.flows.judging.terms import ContractEdits, Loaded
from lodestream.flows.promise import Promise
from lodestream.pipeline import Table, parse_partition
from lodestream.planning.diamonds import ways_of
from lodestream.planning.keyed import keyed, leader, row_keys
from lodestream.planning.plan import append_only
from lodestream.planning.project import Project, contract_of
from lodestream.planning.reader_promises import refusal
from lodestream.planning.unfit import unfit
from lodestream.sources.codecs import codec_for
from lodestream.sources.codecs.frame import Decoder
from lodestream.sources.codecs.required import Required
from lodestream.sources.kinds import Opening, kind_of
from lodestream.sources.reference.file import ReferenceFile
from lodestream.sources.table import AppendedRows, KeyedChanges, KeyedWhole, TableInput, WholeTable
from lodestream.tables.lake import Lake


def new_run() -> str:
    """Sorts by time, and no two processes share it."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}_{uuid.uuid4().hex[:8]}"


class Builder:
    """Makes the flows of one run."""

    def __init__(self, project: Project, spark: SparkSession, run: str, bootstrap: str) -> None:
        self._project = project
        self._config: Config = project.config
        self._spark = spark
        self._run = run
        self._bootstrap = bootstrap
        self._shared: dict[Any, Any] = {}
        self._sessions: dict[str, SparkSession] = {}

    def flow(self, table: Table, *, beside: str = "") -> Flow:
        """The flow of a table; a later one of the same table takes the place of the one before.

        `beside` names what reads the table while its flow goes on: one reader at a time.
        """
        lake = self._lake(table, beside)
        if table.kind == "reference":
            return self._reference(lake, table)
        if table.tier == "bronze":
            return self._bronze(lake, table)
        return self._silver(lake, table).flow if table.tier == "silver" else self._gold(lake, table).flow

    def silver(self, table: Table) -> SilverTable:
        """A Silver table and what guests need of it."""
        return self._silver(self._lake(table, ""), table)

    def gold(self, table: Table, *, beside: str = "") -> KeptGold:
        """A Gold table and how it is kept."""
        return self._gold(self._lake(table, beside), table)

    def feeds(self, name: str) -> bool:
        """Whether readers of a table follow a change feed beside it."""
        return keyed(self._project.graph, name)

    def _session(self, name: str) -> SparkSession:
        """A session of its own: settings and temporary views of flows that run side by side must not meet.

        It is kept for the next flow of that name: each opens the catalog anew, and never gives the connection back.
        """
        if name not in self._sessions:
            self._sessions[name] = self._spark.newSession()
        session = self._sessions[name]
        for key in SMALL_BATCHES:
            session.conf.set(key, self._spark.conf.get(key) or "")
        return session

    def _lake(self, table: Table, beside: str) -> Lake:
        return Lake(self._session(beside or table.name), self._config.catalog.name)

    def _bronze(self, lake: Lake, table: Table) -> Flow:
        declared = table.source
        if declared is None:
            raise DeclarationError(f"{table.name} names no source")
        kind = kind_of(declared)
        opening = Opening(lake, table.name, self._project.pipeline.name, self._config, self._bootstrap, self._shared)
        if kind.pull is not None:
            return pulled_flow(lake, table, self._run, kind.pull(declared, opening))
        if kind.open is None or declared.ddl is None:
            raise DeclarationError(f"{table.name} cannot be read", why=f"{declared.describe()} says no columns")
        return bronze_flow(lake, table, self._run, kind.open(declared, opening), declared.ddl)

    def _reference(self, lake: Lake, table: Table) -> Flow:
        self._enforceable(table)
        contract = contract_of(table)
        if table.reference is None:
            raise DeclarationError(f"{table.name} names no file")
        source = ReferenceFile(lake.spark, table.reference, contract.ddl() if contract else None, table.sequence_by)
        return reference_flow(lake, table, self._run, source, contract, self._promise(table))

    def _silver(self, lake: Lake, table: Table) -> SilverTable:
        graph = self._project.graph
        self._enforceable(table)
        lookups = graph.lookups(table.name)
        inputs = graph.inputs(table.name)
        sources = {name: self._table_input(lake, name, whole=name in lookups) for name in inputs}
        leading = leader(graph, table)
        follows = KeyedChanges(lake, leading) if leading else None
        if leading and follows:
            table = replace(table, keys=row_keys(graph, table.name))
            sources[leading] = follows
        declared = DeclaredInputs(
            tuple(sources.values()), tuple(inputs), frozenset(lookups), frozenset(graph.corrections(table.name))
        )
        agreed = Agreed(declared, contract_of(table), self._decoder(table), self._promise(table), self._edits(table))
        if not keyed(graph, table.name):
            return silver_table(lake, table, self._run, agreed)
        if follows:
            return derived_table(lake, table, self._run, agreed, follows)
        made = history_table if table.history else keyed_table
        return made(lake, table, self._run, agreed)

    def _edits(self, table: Table) -> ContractEdits | None:
        files = contract_files(table)
        return ContractEdits(files, partial(self._reread, table)) if files else None

    def _enforceable(self, table: Table) -> None:
        refused = unfit(self._project.graph, table)
        if refused is not None:
            raise refused

    def _reread(self, table: Table) -> Loaded:
        self._enforceable(table)
        return contract_of(table), self._decoder(table), self._promise(table)

    def _promise(self, table: Table) -> Promise | None:
        contract = contract_of(table)
        return Promise(contract, partial(refusal, self._project.graph, table, contract)) if contract else None

    def _table_input(self, lake: Lake, name: str, *, whole: bool) -> TableInput:
        if keyed(self._project.graph, name):
            return KeyedWhole(lake, name) if whole else KeyedChanges(lake, name)
        return WholeTable(lake, name) if whole else AppendedRows(lake, name)

    def _decoder(self, table: Table) -> Decoder | None:
        if table.decode is None:
            return None
        contract = contract_of(table)
        folder = Path(table.location.file).parent
        codec = codec_for(table.decode, contract.fields if contract else None, root=folder)
        required = Required.of(table.decode, folder, table.delete_when)
        return Decoder(codec, required)

    def _gold(self, lake: Lake, table: Table) -> KeptGold:
        self._enforceable(table)
        graph = self._project.graph
        inputs = [self._gold_input(lake, table, name) for name in graph.inputs(table.name)]
        ways = ways_of(graph, table.name)
        return gold_table(
            lake,
            table,
            self._run,
            inputs,
            contract=contract_of(table),
            promise=self._promise(table),
            agreement=Agreement(lake, ways) if ways.diamond or ways.leaders else None,
        )

    def _gold_input(self, lake: Lake, table: Table, name: str) -> GoldInput:
        graph = self._project.graph
        read = self._table_input(lake, name, whole=not append_only(graph, name) and not keyed(graph, name))
        about = graph[name]
        partitions = tuple(one.column for one in map(parse_partition, about.partition_by))
        return GoldInput(read, name in graph.lookups(table.name), row_keys(graph, name), partitions)
