"""Sinks as they are declared: checked where they stand, shown by the plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from lodestream import Kafka, Pipeline
from lodestream.cli.main import run_command
from lodestream.config import load_config
from lodestream.errors import DeclarationError
from lodestream.planning.plan import make_plan
from lodestream.planning.project import open_sound
from lodestream.serving import Parquet
from lodestream.serving.declared import sinks_of

PIPELINE = """\
from lodestream import Kafka, Pipeline
from lodestream.serving import Parquet

shop = Pipeline("shop")
shop.bronze("raw", Kafka("t"), owner="shop", sinks=[Parquet("out/raw.parquet"), Parquet("raw.txt", name="text")])
shop.silver("rows", sql="SELECT * FROM bronze.raw")
shop.gold("all", sql="SELECT count(*) AS n FROM silver.rows", owner="shop", export="out/all.parquet")
"""


def test_any_table_has_sinks_with_paths_taken_from_its_file() -> None:
    shop = Pipeline("shop")
    shop.bronze("raw", Kafka("t"), sinks=Parquet("out/raw.parquet"))
    shop.silver("rows", sql="SELECT * FROM bronze.raw", sinks=[Parquet("a.parquet", name="a"), Parquet("b.parquet")])
    here = Path(__file__).parent
    assert [one.path for one in sinks_of(shop.tables["bronze.raw"])] == [here / "out/raw.parquet"]
    assert [one.label for one in sinks_of(shop.tables["silver.rows"])] == ["a", "parquet"]


def test_export_is_short_for_a_parquet_sink() -> None:
    shop = Pipeline("shop")
    table = shop.gold("all", sql="SELECT count(*) AS n FROM silver.rows", export="out/all.parquet")
    (sink,) = sinks_of(table)
    assert (sink.label, sink.describe()) == ("export", f"Parquet {Path(__file__).parent / 'out/all.parquet'}")


@pytest.mark.parametrize("wrong", [Parquet, "out.parquet", [object()]])
def test_what_is_no_sink_is_refused_with_its_line(wrong: object) -> None:
    with pytest.raises(DeclarationError, match="is no sink") as refused:
        Pipeline("shop").bronze("raw", Kafka("t"), sinks=wrong)  # type: ignore[arg-type]
    assert refused.value.file == __file__
    assert "Parquet(" in (refused.value.fix or "")


def test_a_sink_called_as_the_export_is_refused() -> None:
    shop = Pipeline("shop")
    own = Parquet("out/own.parquet", name="export")
    table = shop.gold("all", sql="SELECT count(*) AS n FROM silver.rows", export="out/all.parquet", sinks=[own])
    with pytest.raises(DeclarationError, match='a sink is called "export"'):
        sinks_of(table)


def test_two_sinks_of_one_name_are_refused_because_they_would_share_a_position() -> None:
    with pytest.raises(DeclarationError, match='two sinks are called "parquet"'):
        Pipeline("shop").bronze("raw", Kafka("t"), sinks=[Parquet("a.parquet"), Parquet("b.parquet")])


def test_the_plan_shows_sinks_and_finds_a_wrong_one_with_its_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lode.toml").touch()
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    project = open_sound(load_config(tmp_path))
    plan = make_plan(project)
    (finding,) = [one for one in plan.findings if one.severity == "error"]
    assert finding.message == f"bronze.raw: sink text: '{tmp_path / 'raw.txt'}' names no Parquet file"
    assert (finding.location.file, finding.location.line) == (str(tmp_path / "pipeline.py"), 5)
    shown = {one.name: one.sinks for one in plan.tables}
    assert shown["gold.all"] == (f"Parquet {tmp_path / 'out/all.parquet'}",)
    assert shown["silver.rows"] == ()
    with pytest.raises(DeclarationError, match="names no Parquet file"):
        sinks_of(project.graph["bronze.raw"])
    assert run_command(["--project", str(tmp_path), "plan"]) == 2
    assert "sinks: Parquet out/all.parquet" in capfd.readouterr().out
