"""That a table's rows are known to be wrong: noted in the table, until all of them have been made anew.

A process that has found it out may end before the next batch, and the one after it knows nothing else of it.
"""

from __future__ import annotations

from lodestream.tables.iceberg import IcebergStore
from lodestream.tables.jvm import catalog_errors

WANTED = "lode.rebuild"


def note_rebuild(store: IcebergStore) -> None:
    """`store` is loaded for this alone: another thread may publish with its own."""
    with catalog_errors(f"noting that {store.name} is to be rebuilt"):
        store.table.updateProperties().set(WANTED, "next").commit()


def rebuild_noted(store: IcebergStore) -> bool:
    return WANTED in store.table.properties()


def forget_rebuild(store: IcebergStore) -> None:
    """The rows have been made anew and are published. Cut off before this, they are made once more."""
    if rebuild_noted(store):
        with catalog_errors(f"noting that {store.name} was rebuilt"):
            store.table.updateProperties().remove(WANTED).commit()
        store.refresh()
