"""What Spark refuses is told at the user's own line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException

from lodestream import Kafka, Pipeline
from lodestream.engine.blame import blamed, refused_code
from lodestream.errors import UserCodeError
from lodestream.pipeline import Table

SQL = """\
-- stat is explained here
SELECT o.region,
  count(o.stat) AS n
FROM silver.orders o
GROUP BY o.region
"""


def unresolved(name: str = "stat") -> AnalysisException:
    """As Spark says it of a text with other line breaks than the user's."""
    facts = {"objectName": f"`o`.`{name}`", "proposal": "`o`.`status`, `o`.`region`"}
    condition = "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    return AnalysisException(f"[{condition}] ...; line 1 pos 9", errorClass=condition, messageParameters=facts)


def declared(tmp_path: Path) -> Table:
    query = tmp_path / "daily.sql"
    query.write_text(SQL)
    pipeline = Pipeline("p")
    pipeline.bronze("raw", Kafka("t"))
    return pipeline.gold("daily", sql=query, owner="me")


def test_a_column_that_spark_does_not_find_is_told_at_its_line_with_the_nearest(tmp_path: Path) -> None:
    found = blamed(declared(tmp_path), unresolved())
    assert (found.location.file, found.location.line) == (str(tmp_path / "daily.sql"), 3)
    assert (found.message, found.fix) == ("gold.daily: o.stat is no column of its inputs", "did you mean status?")


def test_a_run_names_file_and_line_instead_of_an_unexpected_error(tmp_path: Path) -> None:
    error = refused_code(declared(tmp_path), unresolved())
    assert isinstance(error, UserCodeError)
    assert error.what == f"{tmp_path / 'daily.sql'}:3: gold.daily: o.stat is no column of its inputs"


def test_words_that_are_not_the_users_are_not_blamed_on_them(tmp_path: Path) -> None:
    assert refused_code(declared(tmp_path), unresolved("_lode_k1")) is None
    assert refused_code(declared(tmp_path), ValueError("x")) is None


def test_what_a_function_raises_is_told_at_the_line_of_the_function() -> None:
    pipeline = Pipeline("p")
    pipeline.bronze("raw", Kafka("t"))

    @pipeline.silver(owner="me")
    def seen(raw: Any) -> Any:
        first = raw
        return first.no_such_thing()

    table = pipeline.tables["silver.seen"]
    try:
        seen(object())
    except AttributeError as error:
        wrapped = UserCodeError("raised")
        wrapped.__cause__ = error
        found = blamed(table, wrapped)
    line = Path(found.location.file).read_text().splitlines()[found.location.line - 1]
    assert line.strip() == "return first.no_such_thing()"
    assert "AttributeError" in found.message


def test_what_java_threw_is_said_and_not_which_call_it_was(tmp_path: Path) -> None:
    class Thrown(Exception):
        class java_exception:  # noqa: N801 - as py4j has it
            @staticmethod
            def getMessage() -> str:  # noqa: N802
                return "Invalid source type string for transform: day\nand more"

    found = blamed(declared(tmp_path), Thrown("An error occurred while calling o129.sql."))
    assert found.message == "gold.daily: Invalid source type string for transform: day"
