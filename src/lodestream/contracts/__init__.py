"""Contracts: what a table promises, in ODCS YAML or as a Python class, and what follows from it as SQL."""

from lodestream.contracts.annotations import Key
from lodestream.contracts.conform import Conformed, conform
from lodestream.contracts.limits import Limits
from lodestream.contracts.model import Contract, Field, Masking, Reading, Rule, Threshold, rule
from lodestream.contracts.odcs_read import load_contract, parse_contract
from lodestream.contracts.odcs_write import contract_yaml, write_contract
from lodestream.contracts.python_source import python_source
from lodestream.contracts.record import Record, column
from lodestream.contracts.violations import Violation

__all__ = [
    "Conformed",
    "Contract",
    "Field",
    "Key",
    "Limits",
    "Masking",
    "Reading",
    "Record",
    "Rule",
    "Threshold",
    "Violation",
    "column",
    "conform",
    "contract_yaml",
    "load_contract",
    "parse_contract",
    "python_source",
    "rule",
    "write_contract",
]
