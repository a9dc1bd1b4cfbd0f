"""The page about the configuration says what the code does."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from lodestream.config import KAFKA_OPTIONS, load_config
from lodestream.config.model import SECTIONS
from lodestream.config.reference import render_reference

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_page_is_the_generated_one() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_reference(), "run ./dev docs"


def test_the_page_names_every_option_and_its_variable() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, section in SECTIONS.items():
        part = text.partition(f"## `[profiles.NAME.{name}]`")[2].partition("\n## ")[0]
        for field in fields(section):
            assert f"| `{field.name}` |" in part
            assert f"`LODE_{name.upper()}_{field.name.upper()}`" in part
    assert all(f"- `{name}`" in text for name in KAFKA_OPTIONS)


def test_the_example_on_the_page_loads(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    (tmp_path / "lode.toml").write_text(example[1])
    config = load_config(tmp_path, profile="prod", environ={"LAKE_PASSWORD": "pw", "KAFKA_JAAS": "jaas"})
    assert config.catalog.type == "jdbc"
    assert set(config.kafka.options) == {"security.protocol", "sasl.mechanism", "sasl.jaas.config"}
