"""A flow that is made anew, and a table that is verified again and again, open nothing anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lodestream.engine import run_pipeline
from lodestream.engine.build import Builder
from lodestream.engine.verify import verify_one
from lodestream.planning.project import open_project

PIPELINE = """
from lodestream import Files, Pipeline

shop = Pipeline("shop")
shop.bronze("lines", Files("in", settle="0 s", format="text"))
shop.silver("words", sql="SELECT decode(value, 'UTF-8') AS word FROM bronze.lines WHERE row > 0")
shop.gold("counts", sql="SELECT word, count(*) AS n FROM silver.words GROUP BY word")
"""


def connections(spark: Any, file: Path) -> int:
    """How often the Java process has a file open."""
    process = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    found = 0
    for link in Path(f"/proc/{process}/fd").iterdir():
        try:
            found += link.readlink() == file
        except OSError:
            continue
    return found


@pytest.mark.timeout(240)
def test_flows_made_anew_and_repeated_verifications_open_no_further_sessions_and_connections(
    lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.txt").write_text("a\nb\na\n")
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    project = open_project(lake.config)
    assert run_pipeline(project, once=True, spark=lake.spark).exit_code == 0
    builder, table = Builder(project, lake.spark, "run", "nowhere:1"), project.graph["gold.counts"]
    made, new = [], type(lake.spark).newSession
    monkeypatch.setattr(type(lake.spark), "newSession", lambda self: made.append(1) or new(self))

    def use() -> None:
        assert builder.flow(table).step(100) is None
        assert verify_one(project, builder, table).status == "equal"

    use()
    catalog = (lake.config.state_dir / "catalog.db").resolve()
    before = len(made), connections(lake.spark, catalog)
    assert before[0] == 2, "one for the flow, one for who verifies"
    assert before[1] > 0
    for _ in range(4):
        use()
    assert (len(made), connections(lake.spark, catalog)) == before
