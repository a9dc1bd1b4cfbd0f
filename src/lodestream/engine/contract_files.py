"""The files that a table's contract and decoder come from: they may be edited while it runs."""

from __future__ import annotations

from pathlib import Path

from lodestream.pipeline import Table


def contract_files(table: Table) -> list[Path]:
    found = [table.contract] if isinstance(table.contract, Path) else []
    schema = table.decode.schema_text if table.decode else None
    if schema is not None and schema.endswith((".yaml", ".yml")):
        found.append(Path(table.location.file).parent / schema)
    return found
