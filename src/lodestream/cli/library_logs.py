"""What Spark's Python side logs goes to the file where its JVM writes: a terminal shows what Lodestream has to say."""

from __future__ import annotations

import logging
from pathlib import Path

from lodestream.config import Config

# PySpark's loggers of query errors write JSON to standard error by themselves; Py4J's has no handler, so Python does.
_JSON = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_PLAIN = ("py4j", "pyspark")
_EVENTS = "lodestream.events"


def keep_library_logs(config: Config, *, events_shown: bool) -> None:
    """Called by a command, never by the library: who embeds it decides about logs.

    Where a command shows no events, alerts among them are still logged to standard error.
    """
    from pyspark.logger import PySparkLogger

    file = config.state_dir / "spark.log"
    # Made by PySpark itself: its calls give more than a plain logger takes.
    loggers = [*map(PySparkLogger.getLogger, _JSON), *map(logging.getLogger, _PLAIN)]
    for logger in loggers:
        for handler in list(logger.handlers):
            logger.removeHandler(handler)
        logger.addHandler(_handler(file))
        logger.propagate = False
    _keep_from_root(_handler(file))
    if events_shown:
        logging.getLogger(_EVENTS).addHandler(logging.NullHandler())
        logging.getLogger(_EVENTS).propagate = False


def _keep_from_root(handler: logging.Handler) -> None:
    """Py4J reports a lost connection to the root logger itself, as if the program had said it."""

    def elsewhere(record: logging.LogRecord) -> bool:
        if Path(record.pathname).parent.name != "py4j":
            return True
        handler.handle(record)
        return False

    root = logging.getLogger()
    root.addFilter(elsewhere)  # a logger's filter sees what is logged to that logger alone
    if not root.handlers and logging.lastResort:
        root.addHandler(logging.lastResort)  # or the first such record would set up a format for everybody's


def _handler(file: Path) -> logging.Handler:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handler: logging.Handler = logging.FileHandler(file, encoding="utf-8", delay=True)
    except OSError:
        handler = logging.NullHandler()  # the session says what is wrong with the folder
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    return handler
