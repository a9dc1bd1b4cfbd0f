"""A pipeline that follows one table of a database, and its driver."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from lodestream.config import load_config
from lodestream.tables.inspect import Inspector

PIPELINE = """
from lodestream import Debezium, Json, Kafka, Pipeline

cdc = Pipeline("cdc")
cdc.bronze("customers_raw", Kafka("cdc.public.customers"))


@cdc.silver(
    decode=Debezium(Json("id bigint, name string, region string, credit bigint")),
    contract="customer.yaml",
    keys="id",
    sequence_by="__lsn",
    delete_when="__deleted",
)
def customers(customers_raw):
    return customers_raw


cdc.gold(
    "credit",
    sql="select region, count(*) as customers, sum(credit) as credit from silver.customers group by region",
)
"""
CONTRACT = """
apiVersion: v3.0.2
kind: DataContract
id: cdc.customers
name: customers
version: 1.0.0
status: active
schema:
  - name: customers
    properties:
      - {name: id, physicalType: bigint, primaryKey: true, primaryKeyPosition: 1, required: true}
      - {name: name, physicalType: string}
      - {name: region, physicalType: string}
      - {name: credit, physicalType: bigint}
"""
SETTINGS = """
pipeline = "pipeline.py"
profile = "local"

[profiles.local.kafka]
bootstrap = "{bootstrap}"

[profiles.local.engine]
target = "500 ms"

[profiles.local.spark]
driver_memory = "600m"
"""


class CdcProject:
    def __init__(self, root: Path, bootstrap: str) -> None:
        self.root = root
        root.mkdir()
        (root / "pipeline.py").write_text(PIPELINE)
        (root / "customer.yaml").write_text(CONTRACT)
        (root / "lode.toml").write_text(SETTINGS.format(bootstrap=bootstrap))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        source = str(Path(__file__).parents[3] / "src")
        with (self.root / "driver.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "lodestream.cli", "run"],
                cwd=self.root,
                env={**os.environ, "PYTHONPATH": source},
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def rows(self, table: str) -> list[dict[str, Any]]:
        view = Inspector(load_config(self.root)).look(table)
        return [] if view is None else view.table.scan().to_arrow().to_pylist()

    def said(self) -> str:
        return (self.root / "driver.log").read_text(errors="replace")[-3000:]
