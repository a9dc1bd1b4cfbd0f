"""The how-to's snippets run, and its two forms are one contract."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

from lodestream.contracts import odcs_terms, parse_contract

DOCS = (Path(__file__).parents[3] / "docs" / "contracts.md").read_text(encoding="utf-8")


def snippet(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", DOCS, re.DOTALL)
    return str(found)


def test_the_yaml_and_the_class_of_the_how_to_are_equal() -> None:
    module = sys.modules["documented"] = ModuleType("documented")
    exec(snippet("python"), vars(module))
    assert module.Trips.contract() == parse_contract(snippet("yaml"))


def test_every_property_of_ours_is_in_the_reference() -> None:
    for name in (*odcs_terms.OBJECT_CUSTOM, *odcs_terms.PROPERTY_CUSTOM):
        assert f"`{name}" in DOCS, name
