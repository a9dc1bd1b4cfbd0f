"""Java that is killed before a command has begun its work is told as that, with the exit code for supervisors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PIPELINE = """
from lodestream import Files, Pipeline

shop = Pipeline("shop")
shop.bronze("lines", Files("in", settle="0 s", format="text"))
shop.silver("words", sql="SELECT decode(value, 'UTF-8') AS word FROM bronze.lines")
shop.gold("counts", sql="SELECT word, count(*) AS n FROM silver.words GROUP BY word")
"""
SCRIPT = """
import json, os, signal, sys
from pathlib import Path
import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyspark import SparkContext
from lodestream.config import load_config
from lodestream.engine import replay_dead, run_pipeline, verify_tables
from lodestream.planning.project import open_project
from lodestream.recovery.choice import Choice
from lodestream.runtime.session import start_session

project = open_project(load_config(Path(sys.argv[1])))
config = project.config
config.state_dir.mkdir()
place = {"uri": config.catalog_uri().removeprefix("jdbc:"), "warehouse": config.warehouse()}
catalog = load_catalog(config.catalog.name, type="sql", **place)
catalog.create_namespace("gold")
rows = pa.table({"word": ["a"], "n": pa.array([1], pa.int64())})
catalog.create_table("gold.counts", rows.schema).append(rows)
spark = start_session(config, app_name="killed")
process = SparkContext._gateway.proc
os.kill(process.pid, signal.SIGKILL)
process.wait(30)
told = {}
for name, work in {
    "run": lambda: run_pipeline(project, once=True, spark=spark),
    "replay": lambda: replay_dead(project, "silver.words", Choice()),
    "verify": lambda: list(verify_tables(project)),
}.items():
    try:
        work()
    except Exception as error:
        told[name] = [type(error).__name__, getattr(error, "exit_code", None), str(error)]
print(json.dumps(told))
os._exit(0)
"""


@pytest.mark.timeout(240)
def test_java_killed_before_the_first_batch_is_told_as_that_by_every_command(tmp_path: Path) -> None:
    (tmp_path / "lode.toml").touch()
    (tmp_path / "in").mkdir()
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, timeout=200, check=False
    )
    assert ended.stdout, ended.stderr[-3000:]
    told = json.loads(ended.stdout.splitlines()[-1])
    assert list(told) == ["run", "replay", "verify"]
    assert all(one[:2] == ["JavaEnded", 9] for one in told.values()), told
    assert all("was killed (SIGKILL)" in one[2] for one in told.values())
