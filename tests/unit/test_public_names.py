"""What `from lodestream import ...` offers: few names, and no Spark behind them."""

from __future__ import annotations

import subprocess
import sys

import lodestream

PUBLIC = [
    "Avro",
    "Csv",
    "Debezium",
    "Files",
    "Json",
    "Kafka",
    "LodeError",
    "Pipeline",
    "Protobuf",
    "Raw",
    "Stream",
]


def test_the_public_names_change_only_on_purpose() -> None:
    assert lodestream.__all__ == PUBLIC
    assert sorted(PUBLIC) == PUBLIC
    assert all(hasattr(lodestream, name) for name in PUBLIC)


def test_importing_lodestream_does_not_import_spark() -> None:
    code = "import lodestream, sys; print(sorted({n.split('.')[0] for n in sys.modules} & {'pyspark', 'py4j'}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
