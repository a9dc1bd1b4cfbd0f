"""Contracts: what a table promises, in ODCS YAML or as a Python class, and what follows from it as SQL."""

from lodestream.contracts.model import Contract, Field, Limits, Masking, Reading, Rule, Threshold
from lodestream.contracts.odcs_read import load_contract, parse_contract
from lodestream.contracts.violations import Violation

__all__ = [
    "Contract",
    "Field",
    "Limits",
    "Masking",
    "Reading",
    "Rule",
    "Threshold",
    "Violation",
    "load_contract",
    "parse_contract",
]
