"""How a keyed table stores the place of each row's last change: a plain column for each part of the struct.

Iceberg reads plain columns in batches, and a table with a struct row by row, ten times slower: the old rows of a batch
are few, but a whole row group is read for each of them.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, lit, struct
from pyspark.sql.types import StructField, StructType

from lodestream.contracts.quoting import name as quoted
from lodestream.names import ORDER
from lodestream.tables.hidden import unfiltered

# The last part of a place: whether the change deletes. A row that is there was not deleted, so it is not stored.
GONE = "gone"
_PREFIX = f"{ORDER}_"


def is_part(column: str) -> bool:
    return column.startswith(_PREFIX)


def parts(place: StructType) -> list[StructField]:
    """The columns that a place is stored in."""
    return [StructField(_PREFIX + field.name, field.dataType) for field in place if field.name != GONE]


def spread(rows: DataFrame) -> DataFrame:
    """Rows with their place in one struct, as the table stores them."""
    place = rows.schema[ORDER].dataType
    named = [field.name.removeprefix(_PREFIX) for field in parts(place)] if isinstance(place, StructType) else []
    kept = [quoted(one) for one in rows.columns if one != ORDER]
    return rows.select(*kept, *[col(f"{ORDER}.{quoted(one)}").alias(_PREFIX + one) for one in named])


def gathered(rows: DataFrame) -> DataFrame:
    """Stored rows with their place in one struct."""
    stored = [unfiltered(one).alias(one.removeprefix(_PREFIX)) for one in rows.columns if is_part(one)]
    kept = [quoted(one) for one in rows.columns if not is_part(one)]
    return rows.select(*kept, struct(*stored, lit(False).alias(GONE)).alias(ORDER))
