"""Only what is wrong with the file is told as such: a catalog's trouble passes, and no edit of the file helps."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException

from lodestream.errors import CatalogUnavailable, LodeError, SourceUnreadable
from lodestream.flows.assemblies.reference import reference_flow
from lodestream.flows.flow import Flow
from lodestream.pipeline import Pipeline
from lodestream.pipeline.sources import ReferenceData
from lodestream.sources.reference.file import ReferenceFile


class Java:
    """A Java exception as py4j shows it, without a cause."""

    def __init__(self, name: str, message: str) -> None:
        self._name, self._message = name, message

    def getClass(self) -> Java:  # noqa: N802
        return self

    def getName(self) -> str:  # noqa: N802
        return self._name

    def getMessage(self) -> str:  # noqa: N802
        return self._message

    def getCause(self) -> None:  # noqa: N802
        return None


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    file = tmp_path / "zones.csv"
    file.write_text("zone\n1\n")
    pipeline = Pipeline("taxi")
    pipeline.reference("zones", str(file))
    table = pipeline.tables["silver.zones"]
    source = ReferenceFile(None, ReferenceData(str(file), format="csv"), None)  # type: ignore[arg-type]
    session = SimpleNamespace(conf={})  # its settings are all that is asked of it
    return reference_flow(SimpleNamespace(spark=session), table, "run", source, None)  # type: ignore[arg-type]


def refused(condition: str, java: Java | None = None) -> AnalysisException:
    error = AnalysisException(f"[{condition}] Spark refuses it", errorClass=condition, messageParameters={})
    error._origin = java  # type: ignore[attr-defined]
    return error


def test_a_catalog_that_does_not_answer_is_not_the_files_fault(flow: Flow) -> None:
    away = Java("org.apache.iceberg.jdbc.UncheckedSQLException", "Failed to connect: jdbc:postgresql://lake")
    found = flow.explain(refused("_LEGACY_ERROR_TEMP_2200", away))
    assert isinstance(found, CatalogUnavailable)
    assert "jdbc:postgresql://lake" in str(found.why)


@pytest.mark.parametrize("condition", ["TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"])
def test_a_table_that_is_missing_is_not_the_files_fault(flow: Flow, condition: str) -> None:
    assert flow.explain(refused(condition)) is None


@pytest.mark.parametrize(
    "error",
    [refused("UNRESOLVED_COLUMN.WITH_SUGGESTION"), refused("INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST"),
     refused("UNABLE_TO_INFER_SCHEMA"), RuntimeError("[FAILED_READ_FILE.NO_HINT] zones.csv")],
)  # fmt: skip
def test_columns_and_values_that_do_not_fit_are(flow: Flow, error: Exception) -> None:
    found = flow.explain(error)
    assert isinstance(found, SourceUnreadable)
    assert found.what == "silver.zones: zones.csv cannot be read"


def test_what_is_known_already_is_left_as_it_is(flow: Flow) -> None:
    assert flow.explain(LodeError("ours")) is None
