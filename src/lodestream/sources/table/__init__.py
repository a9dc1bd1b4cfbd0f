"""Tables as input of other tables: what was appended to one, what changed in one by key, or one as a whole."""

from lodestream.sources.table.changes import KeyedChanges, KeyedWhole
from lodestream.sources.table.inputs import AppendedRows, TableInput, WholeTable

__all__ = ["AppendedRows", "KeyedChanges", "KeyedWhole", "TableInput", "WholeTable"]
