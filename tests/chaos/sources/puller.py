"""The process that the test kills: pulls a numbered stream into a Bronze table, batch after batch."""

from __future__ import annotations

import sys
from pathlib import Path

from lodestream import Stream
from lodestream.config import Config
from lodestream.runtime.session import start_session
from lodestream.sources.stream.reading import StreamSource
from lodestream.tables.lake import Lake
from lodestream.tables.publish import Writer
from lodestream.tables.snapshot import Stamp

NAME = "bronze.numbers"


def main(root: Path, pulls: int) -> None:
    config = Config(root=root)
    spark = start_session(config, app_name="puller")
    lake = Lake(spark, config.catalog.name)
    source = StreamSource(spark, Stream("rate-micro-batch", {"rowsPerBatch": "50"}), config.state_dir / "scratch")
    writer = Writer(lake.open(NAME, source.ddl()), f"run{pulls}")
    writer.sweep()

    def publish(rows, position):  # type: ignore[no-untyped-def]
        base = writer.begin()
        number = base.stamp.batch + 1 if base.stamp else 1
        stamp = Stamp(NAME, f"run{pulls}", number, {"stream": position}, None, {})
        write = lambda branch, properties: lake.append(NAME, rows, branch, properties)  # noqa: E731
        writer.publish(writer.stage(base, stamp, write))

    for _ in range(pulls):
        stamp = writer.begin().stamp
        source.pull(stamp.positions["stream"] if stamp else None, publish, 1000)
    values = sorted(row.value for row in lake.whole(NAME).select("value").collect())
    assert values == list(range(len(values))), "a row is lost or doubled"
    print(len(values))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
