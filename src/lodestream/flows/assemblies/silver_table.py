"""A Silver table with everything that others than its own run need of it."""

from __future__ import annotations

from dataclasses import dataclass

from lodestream.flows.flow import Flow
from lodestream.flows.guests.visit import Visited
from lodestream.flows.judging.terms import Contracted, Terms


@dataclass(frozen=True, slots=True)
class SilverTable:
    """`flow` keeps it, `visited` is what a guest sees of it."""

    flow: Flow
    kept: Contracted
    visited: Visited

    @property
    def terms(self) -> Terms:
        return self.kept.terms
