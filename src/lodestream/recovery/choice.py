"""Which dead letters an operator means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from lodestream.config.duration import parse_duration
from lodestream.errors import ConfigError

State = Literal["open", "replayed", "discarded", "pending"]
STATES: tuple[State, ...] = ("open", "replayed", "discarded", "pending")
_DATE_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Choice:
    """Filters that all must hold; an empty choice means every letter.

    `reason` is a part of any of its reasons, `rule` the whole name of a rule or an expectation that it broke.
    """

    letters: tuple[str, ...] = ()
    reason: str | None = None
    rule: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    batch: int | None = None
    limit: int | None = None

    @property
    def broken(self) -> tuple[str, ...]:
        """How a reason begins that names the rule, in small letters; what broke it may follow behind a colon."""
        return tuple(f"{kind}: {self.rule.lower()}" for kind in ("rule", "expect")) if self.rule else ()

    @property
    def everything(self) -> bool:
        return self == Choice(limit=self.limit)


def parse_moment(text: str, *, now: datetime | None = None) -> datetime:
    """`2024-01-31`, `2024-01-31T10:00` (UTC unless it says otherwise), or how long ago: `15 min`.

    Every command reads times here: the same text is the same moment, wherever it is typed.
    """
    refuse_ambiguous(text)
    try:
        return (now or datetime.now(UTC)) - timedelta(seconds=parse_duration(text))
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(text)
        if text.isdecimal():
            raise ValueError(text)
    except ValueError:
        raise ConfigError(
            f'"{text}" is no time',
            why="it is neither a date, nor a date and time, nor a duration",
            fix='write 2024-01-31, 2024-01-31T10:00 (UTC), 2024-01-31T10:00+01:00 or "15 min" (ago)',
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def refuse_ambiguous(text: str) -> None:
    """Eight digits may be a date, and `lode changes` takes digits for a snapshot: no command guesses.

    More digits are a snapshot, although Python reads many of them as a date, a separator and a time.
    """
    try:
        day = date.fromisoformat(text) if text.isdecimal() and len(text) == _DATE_DIGITS else None
    except ValueError:
        return
    if day is not None:
        raise ConfigError(
            f'"{text}" may be the day {day} or a snapshot',
            why="both are written in digits alone",
            fix=f"write {day} for the day; the id of a snapshot is longer: `lode events --name batch.published`",
        )


def check_letters(letters: tuple[str, ...]) -> tuple[str, ...]:
    """Ids may be shortened, as far as they are ids at all."""
    for one in letters:
        if not re.fullmatch(r"[0-9a-f]{4,32}", one):
            raise ConfigError(
                f'"{one}" is no id of a dead letter',
                why="ids are 4 to 32 characters of 0-9 and a-f",
                fix="`lode dead list TABLE` shows them",
            )
    return letters
