"""One thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lodestream.errors import LodeError

State = Literal["ok", "warning", "broken"]


@dataclass(frozen=True, slots=True)
class Check:
    """`found` says what is there; `fix` what to do when that is not good."""

    name: str
    state: State
    found: str
    fix: str | None = None

    @classmethod
    def failed(cls, name: str, error: LodeError) -> Check:
        return cls(name, "broken", f"{error.what}: {error.why}" if error.why else error.what, error.fix)
