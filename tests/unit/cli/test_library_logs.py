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
from lodestream.observe import EventLog, FlowBlocked
keep_library_logs(Config(root=Path(sys.argv[1])), events_shown=sys.argv[2] == "shown")
from pyspark.logger import PySparkLogger
PySparkLogger.getLogger("DataFrameQueryContextLogger").exception("[DIVIDE_BY_ZERO]", file="x.py", line="1")
PySparkLogger.getLogger("SQLQueryContextLogger").exception("[CAST_INVALID_INPUT]", errorClass="CAST")
logging.getLogger("py4j.clientserver").error("Error while sending or receiving.")
import socket, threading
from py4j.java_gateway import GatewayClient, GatewayParameters
from py4j.protocol import Py4JNetworkError
java = socket.create_server(("127.0.0.1", 0))
def hang_up():
    while True:
        java.accept()[0].close()
threading.Thread(target=hang_up, daemon=True).start()
try:
    GatewayClient(gateway_parameters=GatewayParameters(port=java.getsockname()[1])).send_command("x")
except Py4JNetworkError:
    pass
EventLog(Path(sys.argv[1]) / "events", "run1").emit(
    FlowBlocked("silver.zones", error="SourceUnreadable", what="a bad file", why=None, fix=None)
)
"""


def said(folder: Path, shown: str) -> tuple[str, str]:
    done = subprocess.run([sys.executable, "-c", LOUD, folder, shown], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr, (folder / ".lode" / "spark.log").read_text()


def test_spark_is_silent_and_its_words_are_kept(tmp_path: Path) -> None:
    terminal, file = said(tmp_path, "shown")
    assert terminal == ""
    for word in ("DIVIDE_BY_ZERO", "CAST_INVALID_INPUT", "Error while sending", "Exception while sending"):
        assert word in file


def test_where_no_events_are_shown_an_alert_is_still_logged(tmp_path: Path) -> None:
    terminal, _ = said(tmp_path, "quiet")
    assert terminal.strip() == "flow.blocked flow=silver.zones error=SourceUnreadable what=a bad file"
