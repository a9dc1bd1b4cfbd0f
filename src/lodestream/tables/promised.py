"""Which contract a table is kept under: recorded in the table itself, so that the next version is held against it."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lodestream.contracts import Contract, contract_yaml, parse_contract
from lodestream.errors import ContractError
from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.jvm import catalog_errors

if TYPE_CHECKING:
    from lodestream.tables.inspect import TableView

# For people, and in full for us. Compressed: each commit writes the table's properties anew.
TITLE = "lode.contract"
TEXT = "lode.contract.odcs"


def promise(contract: Contract) -> dict[str, str]:
    """The table properties that record a contract."""
    packed = base64.b64encode(zlib.compress(contract_yaml(contract).encode(), 9)).decode()
    return {TITLE: contract.title, TEXT: packed}


def promised(properties: Mapping[str, str]) -> Contract | None:
    """The contract that a table's properties record; None for a table that is older than that, or kept by others."""
    packed = properties.get(TEXT)
    if packed is None:
        return None
    try:
        return parse_contract(zlib.decompress(base64.b64decode(packed)).decode(), subject=TITLE)
    except (ValueError, zlib.error, ContractError):
        return None  # written by a version of ours that knew more than this one


def recorded(store: IcebergStore) -> Contract | None:
    return promised(_properties(store))


def record(store: IcebergStore, contract: Contract) -> None:
    """Write down that the table is kept under this contract from now on, unless it says so already."""
    wanted, held = promise(contract), _properties(store)
    if all(held.get(key) == value for key, value in wanted.items()):
        return
    with catalog_errors(f"recording the contract of {store.name}"):
        update = store.table.updateProperties()
        for key, value in wanted.items():
            update = update.set(key, value)
        update.commit()
    store.refresh()


def accept(view: TableView, contract: Contract) -> None:
    """The same by a person's decision, without a JVM."""
    with view.table.transaction() as change:
        change.set_properties(promise(contract))


def _properties(store: IcebergStore) -> dict[str, str]:
    held = store.table.properties()
    return {key: str(held[key]) for key in (TITLE, TEXT) if key in held}
