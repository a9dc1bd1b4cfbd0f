"""The seam of a declared decoder: what the house asks of it without knowing the format. Decoding is elsewhere.

A `schema` is a Spark DDL string ("id bigint, name string") or the path of a contract. So are `columns`, for formats
whose schema is their own; where neither is given, the table's contract says which columns there are.
"""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

# A message of a change feed that brings no row: a tombstone repeats the delete before it, a truncate ends all rows.
TOMBSTONE, TRUNCATE = "tombstone", "truncate"


class DecoderDeclaration(ABC):  # noqa: B024 - a plain marker would not say that it is a seam
    """How Silver reads the raw bytes of Bronze, as declared: plain and frozen, usable without a JVM.

    A codec is a subclass, and `lodestream.sources.codecs.register_codec` says how it decodes.
    """

    # What reasons of its dead letters begin with.
    format: ClassVar[str] = ""
    # SQL over the decoded columns: what a message is that brings no row (`TOMBSTONE`, `TRUNCATE`), and null of a row.
    # It counts where the declared function gives those columns back.
    notice: ClassVar[str | None] = None
    # An SQL condition over the decoded columns: true of messages that may lack required values, such as deletes.
    bare: ClassVar[str | None] = None
    # Whether a test may give it a mapping, which is sent as JSON.
    takes_json: ClassVar[bool] = False

    @property
    def schema_text(self) -> str | None:
        """The columns that the user has spelt out: Spark DDL, or the path of a contract."""
        return None
