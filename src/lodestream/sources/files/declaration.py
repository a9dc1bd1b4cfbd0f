"""Files in a folder or bucket, as declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from lodestream.config import parse_duration
from lodestream.pipeline.location import caller_location, declaration_error
from lodestream.pipeline.sources import Coordinates, FileFormat, SourceDeclaration, check_format

BRONZE_DDL = "value BINARY, file STRING, row BIGINT, modified TIMESTAMP, size BIGINT"
COORDINATES = Coordinates(
    order=("file", "row"),
    # When a file was written is when its records arrived.
    arrival="modified",
    about=("modified", "size"),
    # Row 0 is the header line, or says that a file is empty.
    records="row > 0",
)


@dataclass(frozen=True)
class Files(SourceDeclaration):
    """New files in a folder or bucket, each once; a file counts when it is unchanged for `settle`."""

    path: str
    format: FileFormat = "json"
    pattern: str = "*"
    settle: str = "2 s"
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    ddl = BRONZE_DDL
    coordinates = COORDINATES

    def __post_init__(self) -> None:
        here = caller_location()
        check_format(here, self.format)
        try:
            parse_duration(self.settle)
        except ValueError as error:
            raise declaration_error(here, f"settle: {error}", fix='write settle="2 s"') from error

    @property
    def settle_seconds(self) -> float:
        return parse_duration(self.settle)

    def beside(self, folder: Path) -> Self:
        """The same files with a relative path taken from the folder of the declaring file."""
        return self if ":/" in self.path else replace(self, path=str(folder / Path(self.path).expanduser()))

    def describe(self) -> str:
        return f"{self.format} files {self.path}"

    @property
    def schema_text(self) -> str | None:
        return self.schema
