"""Every hidden column, sibling table and snapshot note that is ours, each named once."""

from __future__ import annotations

# Columns of a row on its way.
CARRIED = "_lode"  # the raw row, beside what declared code makes of it
EVENT = "_lode_event"  # which event a row came from, while letters are replayed
ERROR = "_error"  # why a row could not be decoded
REASONS = "_reasons"  # what speaks against a judged row
FILTERED = "_filtered"  # the declared filter that left a row out
WARNED = "_warned"  # what a row is published in spite of
PLACE = "_lode_x_place"  # where a change stands in the order of all changes of its key

# Columns of stored tables.
WEIGHT = "_weight"  # in a feed: 1 for a row that appeared, -1 for one that went, 0 for a mark
BATCH = "_batch"  # in a feed: the batch that wrote the row
ORDER = "_lode_order"  # in a feed: the order key of a change; in a keyed table's files a column for each part of it
STATE_COLUMN = "_lode_state"  # in the files of a Gold table: what its aggregates are computed from
VALID_FROM, VALID_TO, IS_CURRENT = "valid_from", "valid_to", "is_current"  # in a table that keeps versions

# Tables beside a table.
DEAD, CHANGES, MARKS, STATES = "__dead", "__changes", "__marks", "__state"


def hidden_column(name: str) -> bool:
    """Whether a column of a stored table is ours alone: the order of a row's changes, or the state of a Gold row."""
    return name == ORDER or in_files_only(name)


def in_files_only(name: str) -> bool:
    """Whether it lies in the files of a table that others read, and its readers do not see it."""
    return name == STATE_COLUMN or name.startswith(f"{ORDER}_")
