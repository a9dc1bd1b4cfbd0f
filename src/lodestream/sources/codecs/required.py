"""What a decoder's own contract requires of an event: one that lacks it is no good row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lodestream.contracts import Contract, Violation, load_contract
from lodestream.errors import UserCodeError
from lodestream.pipeline.decoders import DecoderDeclaration

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True, slots=True)
class Required:
    """Conditions over decoded columns that are true where a required value is missing; `unless` is true of deletes."""

    missing: tuple[Violation, ...] = ()
    unless: str | None = None

    @classmethod
    def of(cls, decl: DecoderDeclaration, root: Path, delete_when: str | None = None) -> Required:
        """Only a contract that the decoder names: that of the table speaks of what the function returns."""
        named = decl.schema_text
        if named is None or not named.endswith((".yaml", ".yml")):
            return cls()
        found = by_source(load_contract(root / named)).violations()
        exempt = [one for one in (decl.bare, delete_when) if one]
        unless = " OR ".join(f"coalesce(({one}\n), false)" for one in exempt) or None
        return cls(tuple(one for one in found if one.kind == "required"), unless)

    def held(self, decoded: DataFrame, error: str) -> DataFrame:
        """The decoded rows, with what is missing as their error."""
        if not self.missing:
            return decoded
        from pyspark.sql.functions import coalesce, col

        return decoded.withColumn(error, coalesce(col(error), self._said(decoded)))

    def _said(self, decoded: DataFrame) -> Column:
        from pyspark.errors import AnalysisException
        from pyspark.sql.functions import concat_ws, expr, lit, when

        reasons = concat_ws("; ", *(when(expr(one.sql), lit(one.reason)) for one in self.missing))
        if self.unless is None:
            return when(reasons != "", reasons)
        try:
            decoded.select(expr(self.unless))
        except AnalysisException as unknown:
            raise UserCodeError(
                "the decoder cannot tell which events may lack required values",
                why=f"delete_when is about columns that the function makes: {str(unknown).splitlines()[0]}",
                fix="write delete_when over columns of the event, or make them optional in the decoder's contract and"
                " required in the table's",
            ) from unknown
        return when((reasons != "") & ~expr(self.unless), reasons)


def by_source(contract: Contract) -> Contract:
    """The contract of the event: columns by the names that they have there. Limits and rules are the table's matter."""
    fields = tuple(replace(field, name=field.source_name, source=None) for field in contract.fields)
    keys = tuple(contract[key].source_name for key in contract.keys)
    return Contract(contract.name, contract.version, fields, keys=keys)
