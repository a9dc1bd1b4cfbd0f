"""kill -9 around the publish of a streamed batch; what is left is the warehouse and the catalog."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

PULLER = Path(__file__).with_name("puller.py")


def run(root: Path, pulls: int, failpoint: str = "") -> subprocess.CompletedProcess[str]:
    shutil.rmtree(root / ".lode" / "scratch", ignore_errors=True)
    environment = {**os.environ, "LODE_FAILPOINTS": failpoint}
    command = [sys.executable, str(PULLER), str(root), str(pulls)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)


def test_a_kill_before_or_after_publishing_a_streamed_batch_loses_and_doubles_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, 4, "publish.after@bronze.numbers#3=kill").returncode == -signal.SIGKILL
    assert run(tmp_path, 5, "publish.before@bronze.numbers#2=kill").returncode == -signal.SIGKILL
    last = run(tmp_path, 2)
    assert last.returncode == 0, last.stderr
    assert int(last.stdout) == 50 * (3 + 1 + 2)
