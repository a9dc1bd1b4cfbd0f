"""What time it is, wherever Lodestream writes it into rows, and how a moment is shown. A test may stop it."""

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


def utc(moment: datetime | float) -> str:
    """A moment as every listing shows it: in UTC, and saying so. `--since` takes the same text."""
    found = moment.astimezone(UTC) if isinstance(moment, datetime) else datetime.fromtimestamp(moment, UTC)
    return f"{found:%Y-%m-%d %H:%M:%S}Z"
