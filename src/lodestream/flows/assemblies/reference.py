"""Reference data: a file beside the pipeline, loaded whole whenever its content changes, with its history if asked."""

from __future__ import annotations

from lodestream.contracts import Contract
from lodestream.flows.context import Context
from lodestream.flows.flow import Flow
from lodestream.flows.intake import SourceIntake
from lodestream.flows.parts import Parts
from lodestream.flows.promise import Promise
from lodestream.flows.reference.making import ReferenceFileTable, ReferenceHome, ReferenceMaking
from lodestream.pipeline import Table
from lodestream.sources.reference.file import ReferenceFile
from lodestream.tables.lake import Lake


def reference_flow(
    lake: Lake,
    table: Table,
    run: str,
    source: ReferenceFile,
    contract: Contract | None = None,
    promise: Promise | None = None,
) -> Flow:
    context = Context.of(lake, table, run)
    reference = ReferenceFileTable(context, source, contract)
    return Flow(context, Parts(SourceIntake([source]), ReferenceHome(reference, promise), ReferenceMaking(reference)))
