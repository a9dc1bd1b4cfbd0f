"""Where a sink is in the history of a table: the identity of the table beside the snapshot."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lodestream.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Position:
    """As text `UUID/SNAPSHOT`, or inside a snapshot `UUID/SNAPSHOT/NUMBER`, with an `a` where all its rows are counted.

    `uuid` is that of the table, or of its feed.
    """

    uuid: str
    snapshot: int
    number: int | None = None
    of_all: bool = False

    def __str__(self) -> str:
        inside = "" if self.number is None else f"/{self.number}{'a' if self.of_all else ''}"
        return f"{self.uuid}/{self.snapshot}{inside}"

    @classmethod
    def parse(cls, text: str) -> Position:
        found = re.fullmatch(r"([^/]+)/(\d+)(?:/(\d+)(a?))?", text)
        if found is None:
            raise ConfigError(
                f"{text!r} is no position of a sink",
                why="a position is the text of delivery.position, as the sink was given it",
                fix="let position() of the sink return that, or None to be given everything again",
            )
        uuid, snapshot, number, of_all = found.groups()
        return cls(uuid, int(snapshot), int(number) if number else None, bool(of_all))
