"""What time it is, wherever Lodestream writes it into rows. A test may stop it."""

from __future__ import annotations

from datetime import UTC, datetime

_stopped: datetime | None = None


def now() -> datetime:
    return _stopped or datetime.now(UTC)


def freeze(moment: datetime | None) -> None:
    """Stop at a moment, which must say its zone; None lets time go on."""
    global _stopped
    if moment is not None and moment.tzinfo is None:
        raise ValueError(f"{moment} says no zone: write datetime(..., tzinfo=UTC)")
    _stopped = moment
