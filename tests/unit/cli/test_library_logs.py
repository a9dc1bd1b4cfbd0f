"""A terminal shows what Lodestream says; what Spark's Python side logs goes to Spark's file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LOUD = """
import logging, sys
from pathlib import Path
from lodestream.cli.library_logs import keep_library_logs
from lodestream.config import Config
from lodestream.observe.events import EventLog
keep_library_logs(Config(root=Path(sys.argv[1])), events_shown=sys.argv[2] == "shown")
from pyspark.logger import PySparkLogger
PySparkLogger.getLogger("DataFrameQueryContextLogger").exception("[DIVIDE_BY_ZERO]", file="x.py", line="1")
PySparkLogger.getLogger("SQLQueryContextLogger").exception("[CAST_INVALID_INPUT]", errorClass="CAST")
logging.getLogger("py4j.clientserver").error("Error while sending or receiving.")
EventLog(Path(sys.argv[1]) / "events", "run1").emit("flow.blocked", "silver.zones", what="a bad file")
"""


def said(folder: Path, shown: str) -> tuple[str, str]:
    done = subprocess.run([sys.executable, "-c", LOUD, folder, shown], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr, (folder / ".lode" / "spark.log").read_text()


def test_spark_is_silent_and_its_words_are_kept(tmp_path: Path) -> None:
    terminal, file = said(tmp_path, "shown")
    assert terminal == ""
    for word in ("DIVIDE_BY_ZERO", "CAST_INVALID_INPUT", "Error while sending"):
        assert word in file


def test_where_no_events_are_shown_an_alert_is_still_logged(tmp_path: Path) -> None:
    terminal, _ = said(tmp_path, "quiet")
    assert terminal.strip() == "flow.blocked flow=silver.zones what=a bad file"
