"""The page about pipelines: its example loads, its table of options is complete."""

from __future__ import annotations

import re
from pathlib import Path

from lodestream.pipeline import lint, load_pipeline
from lodestream.pipeline.options import GoldOptions, SilverOptions

PAGE = Path(__file__).parents[3] / "docs" / "pipelines.md"


def test_the_example_is_a_sound_pipeline(tmp_path: Path) -> None:
    example = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    (tmp_path / "pipeline.py").write_text(example[1])
    (tmp_path / "zones.csv").write_text("location_id,borough\n")
    graph = load_pipeline("pipeline.py", tmp_path).graph()
    assert set(graph.names) == {"bronze.trips_raw", "silver.zones", "silver.trips", "gold.daily_revenue"}
    assert graph.streams("silver.trips") == ("bronze.trips_raw",)
    assert [one for one in lint(graph) if one.severity == "error"] == []


def test_the_table_names_every_option() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## Options")[2].partition("\n\n")[0]
    for name in {**SilverOptions.__annotations__, **GoldOptions.__annotations__}:
        assert f"`{name}`" in table
