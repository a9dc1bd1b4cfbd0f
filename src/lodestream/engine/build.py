"""From declarations to flows: which sources, which decoder, which tier's flow."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from lodestream.config import Config
from lodestream.contracts import Contract
from lodestream.engine.contract_watch import ContractEdits, contract_files
from lodestream.engine.diamonds import ways_of
from lodestream.engine.keyed import keyed, leader, row_keys
from lodestream.engine.plan import append_only
from lodestream.engine.project import Project, contract_of
from lodestream.engine.promises import refusal
from lodestream.engine.unfit import unfit
from lodestream.errors import DeclarationError
from lodestream.flows.agreement import Agreement
from lodestream.flows.bronze import BronzeFlow
from lodestream.flows.flow import Flow
from lodestream.flows.gold.flow import GoldFlow, GoldInput
from lodestream.flows.keyed.derived import DerivedFlow
from lodestream.flows.keyed.flow import KeyedFlow
from lodestream.flows.keyed.history import HistoryFlow
from lodestream.flows.promise import Promise
from lodestream.flows.reference.flow import ReferenceFlow
from lodestream.flows.silver.declared import Decoder
from lodestream.flows.silver.flow import SilverFlow
from lodestream.flows.stream import StreamFlow
from lodestream.flows.tuning import SMALL_BATCHES
from lodestream.pipeline import Files, Kafka, Stream, Table, parse_partition
from lodestream.sources.changes import KeyedChanges, KeyedWhole
from lodestream.sources.codecs import codec_for, decode_frame
from lodestream.sources.codecs.required import Required
from lodestream.sources.file_rows import BRONZE_DDL as FILES_DDL
from lodestream.sources.files import FilesSource, bronze_files
from lodestream.sources.kafka import BRONZE_DDL, KafkaSource
from lodestream.sources.kafka_admin import KafkaAdmin
from lodestream.sources.kafka_settings import java_settings, native_settings
from lodestream.sources.reference import ReferenceFile
from lodestream.sources.source import Source
from lodestream.sources.stream import StreamSource
from lodestream.sources.table import AppendedRows, TableInput, WholeTable
from lodestream.tables.lake import Lake


def new_run() -> str:
    """Sorts by time, and no two processes share it."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}_{uuid.uuid4().hex[:8]}"


class Builder:
    """Makes the flows of one run; flows that talk to the same cluster share one connection."""

    def __init__(self, project: Project, spark: SparkSession, run: str, bootstrap: str) -> None:
        self._project = project
        self._config: Config = project.config
        self._spark = spark
        self._run = run
        self._bootstrap = bootstrap
        self._admins: dict[str, KafkaAdmin] = {}
        self._sessions: dict[str, SparkSession] = {}

    def flow(self, table: Table, *, beside: str = "") -> Flow:
        """The flow of a table; a later one of the same table takes the place of the one before.

        `beside` names what reads the table while its flow goes on: one reader at a time.
        """
        flow = self._flow(table, self._session(beside or table.name))
        flow.promise = self._promise(table)
        return flow

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

    def _flow(self, table: Table, session: SparkSession) -> Flow:
        lake = Lake(session, self._config.catalog.name)
        if table.kind == "reference":
            return self._reference(lake, table)
        if table.tier == "bronze":
            return self._bronze(lake, table)
        if table.tier == "silver":
            return self._silver(lake, table)
        return self._gold(lake, table)

    def _bronze(self, lake: Lake, table: Table) -> Flow:
        if isinstance(table.source, Kafka):
            return BronzeFlow(lake, table, self._run, self._kafka(lake, table, table.source), BRONZE_DDL)
        if isinstance(table.source, Files):
            read = partial(bronze_files, lake, table.name, table.source)
            files = FilesSource(lake.spark, table.source, read)
            return BronzeFlow(lake, table, self._run, files, FILES_DDL)
        if isinstance(table.source, Stream):
            scratch = self._config.state_dir / "tmp"
            return StreamFlow(lake, table, self._run, StreamSource(lake.spark, table.source, scratch))
        raise DeclarationError(f"{table.name} names no source")

    def _kafka(self, lake: Lake, table: Table, declared: Kafka) -> Source:
        bootstrap = declared.bootstrap or self._bootstrap
        options = {**self._config.kafka.options, **declared.options}
        if bootstrap not in self._admins:
            self._admins[bootstrap] = KafkaAdmin(bootstrap, native_settings(options))
        group = f"lode-{self._project.pipeline.name}-{table.name}"
        return KafkaSource(lake.spark, declared, self._admins[bootstrap], java_settings(bootstrap, options), group)

    def _reference(self, lake: Lake, table: Table) -> Flow:
        self._enforceable(table)
        contract = contract_of(table)
        if not isinstance(table.source, Files):
            raise DeclarationError(f"{table.name} names no file")
        source = ReferenceFile(lake.spark, table.source, contract.ddl() if contract else None, table.sequence_by)
        return ReferenceFlow(lake, table, self._run, source, contract)

    def _silver(self, lake: Lake, table: Table) -> Flow:
        graph = self._project.graph
        self._enforceable(table)
        lookups = graph.lookups(table.name)
        inputs = graph.inputs(table.name)
        sources = [self._table_input(lake, name, whole=name in lookups) for name in inputs]
        if leader(graph, table):
            table = replace(table, keys=row_keys(graph, table.name))
        return self._silver_kind(table)(
            lake,
            table,
            self._run,
            sources,
            inputs=inputs,
            lookups=lookups,
            corrected=graph.corrections(table.name),
            contract=contract_of(table),
            decode=self._decoder(table),
            edits=self._edits(table),
        )

    def _edits(self, table: Table) -> ContractEdits | None:
        files = contract_files(table)
        return ContractEdits(files, partial(self._reread, table)) if files else None

    def _enforceable(self, table: Table) -> None:
        refused = unfit(self._project.graph, table)
        if refused is not None:
            raise refused

    def _reread(self, table: Table) -> tuple[Contract | None, Decoder | None, Promise | None]:
        self._enforceable(table)
        return contract_of(table), self._decoder(table), self._promise(table)

    def _promise(self, table: Table) -> Promise | None:
        contract = contract_of(table)
        return Promise(contract, partial(refusal, self._project.graph, table, contract)) if contract else None

    def _silver_kind(self, table: Table) -> type[SilverFlow]:
        graph = self._project.graph
        if not keyed(graph, table.name):
            return SilverFlow
        if leader(graph, table):
            return DerivedFlow
        return HistoryFlow if table.history else KeyedFlow

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
        return partial(decode_frame, codec=codec, required=required)

    def _gold(self, lake: Lake, table: Table) -> Flow:
        self._enforceable(table)
        graph = self._project.graph
        inputs = [self._gold_input(lake, table, name) for name in graph.inputs(table.name)]
        ways = ways_of(graph, table.name)
        return GoldFlow(
            lake,
            table,
            self._run,
            inputs,
            contract=contract_of(table),
            agreement=Agreement(lake, ways) if ways.diamond or ways.leaders else None,
        )

    def _gold_input(self, lake: Lake, table: Table, name: str) -> GoldInput:
        graph = self._project.graph
        read = self._table_input(lake, name, whole=not append_only(graph, name) and not keyed(graph, name))
        about = graph[name]
        partitions = tuple(one.column for one in map(parse_partition, about.partition_by))
        return GoldInput(read, name in graph.lookups(table.name), row_keys(graph, name), partitions)
