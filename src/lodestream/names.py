"""Every column and sibling table that is ours, each named once. The notes of snapshots are in tables/notes.py."""

from __future__ import annotations


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


# Columns of a row on its way.
CARRIED = "_lode"  # the raw row, beside what declared code makes of it
EVENT = "_lode_event"  # which event a row came from, while letters are replayed
ERROR = "_error"  # why a row could not be decoded
REASONS = "_reasons"  # what speaks against a judged row
FILTERED = "_filtered"  # the declared filter that left a row out
WARNED = "_warned"  # what a row is published in spite of
ORDER_KEY = "_lode_x_order_key"  # orders the changes of a key

# Columns of stored tables.
WEIGHT = "_weight"  # in a feed: 1 for a row that appeared, -1 for one that went, 0 for a mark
BATCH = "_batch"  # in a feed: the batch that wrote the row
ORDER = "_lode_order"  # in a feed: the order key of a change; in a keyed table's files a column for each part of it
STATE_COLUMN = "_lode_state"  # in the files of a Gold table: what its aggregates are computed from
VALID_FROM, VALID_TO, IS_CURRENT = "valid_from", "valid_to", "is_current"  # in a table that keeps versions

# A batch has these beside the declared columns while it is judged, and would overwrite a declared one.
_JUDGED = (BATCH, ERROR, REASONS, FILTERED, WARNED)
# Iceberg adds these to every table that is read: one of the same name would be taken for where a row lies.
_ICEBERG = ("_file", "_pos", "_deleted", "_spec_id", "_partition")
RESERVED = (
    f"names of the form {CARRIED}... and {WEIGHT}..., {_listed(_JUDGED)} are ours; {_listed(_ICEBERG)} are Iceberg's"
)


def dead_of(table: str) -> str:
    """Its dead letters: the rows that were refused."""
    return f"{table}__dead"


def feed_of(table: str) -> str:
    """The feed of weighted changes of a keyed table."""
    return f"{table}__changes"


def marks_of(table: str) -> str:
    """What a keyed table remembers of changes that its rows do not show."""
    return f"{table}__marks"


def state_of(table: str) -> str:
    """The groups of a Gold table that its HAVING hides."""
    return f"{table}__state"


def siblings_of(table: str) -> tuple[str, ...]:
    """Every table that may stand beside a table."""
    return dead_of(table), feed_of(table), marks_of(table), state_of(table)


def ours(name: str) -> bool:
    """Whether a column is one of ours by its name, whichever: no declared column may look like one."""
    return name == CARRIED or name.startswith(f"{CARRIED}_")


def reserved(name: str) -> bool:
    """Whether a column may not have the name, because tables and batches have columns of ours beside the declared."""
    low = name.lower()
    weight = low == WEIGHT or low.startswith(f"{WEIGHT}_")
    return ours(low) or weight or low in (*_JUDGED, *_ICEBERG)


def hidden_column(name: str) -> bool:
    """Whether a column of a stored table is ours alone: the order of a row's changes, or the state of a Gold row."""
    return name == ORDER or in_files_only(name)


def in_files_only(name: str) -> bool:
    """Whether it lies in the files of a table that others read, and its readers do not see it."""
    return name == STATE_COLUMN or name.startswith(f"{ORDER}_")
