"""The system under test: `lode run` on the project in ROOT."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

from lodestream.config import load_config
from lodestream.engine import run_pipeline
from lodestream.planning.project import open_project


def main(root: str) -> int:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    return run_pipeline(open_project(load_config(Path(root))), stop=stop).exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
