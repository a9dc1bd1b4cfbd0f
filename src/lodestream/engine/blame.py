"""From what Spark or Python raised to the user's line: file, line, what is wrong and the nearest name."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

from pyspark.errors import PySparkException

from lodestream.config import nearest
from lodestream.errors import DeclarationError, LodeError, UserCodeError
from lodestream.pipeline import Finding, Location, Table
from lodestream.pipeline.query_check import judged_names, near_function
from lodestream.planning.checks import location_of

_PLACE = re.compile(r"line (\d+),? pos(?:ition)? (\d+)", re.IGNORECASE)
_NAMED = re.compile(r"`((?:[^`]|``)*)`")
# Mistakes that a query or function can have, and that we have not made for it.
_USERS_FAULT = (
    "UNRESOLVED_COLUMN",
    "UNRESOLVED_FIELD",
    "UNRESOLVED_ROUTINE",
    "MISSING_AGGREGATION",
    "DATATYPE_MISMATCH",
)
_OURS = Path(__file__).parents[1]


def blamed(table: Table, error: Exception) -> Finding:
    """The finding behind an error that came out of a table's function or query."""
    spark = _spark_error(error)
    if spark is not None:
        return _of_spark(table, spark)
    if isinstance(error, LodeError) and error.__cause__ is None:
        message = error.what if table.name in error.what else f"{table.name}: {error.what}"
        # What is refused of a query stands in its file, as it does without Spark.
        location = location_of(table, 1) if isinstance(error, DeclarationError) else table.location
        return Finding("error", table.name, message, error.why or "", error.fix or "", location)
    if not isinstance(error, LodeError):
        said = " ".join(_first_words(error).split())[:300]
        why = "Spark refuses it over empty tables, as a run would"
        return Finding("error", table.name, f"{table.name}: {said}", why, "correct its declaration", table.location)
    cause = error.__cause__ or error
    said = " ".join(str(cause).split()) or type(cause).__name__
    return Finding(
        "error",
        table.name,
        f"{table.name}: {type(cause).__name__}: {said[:300]}",
        "its function raised it over an empty input",
        "correct the function: it is called with DataFrames that have columns and no rows",
        _raised_at(table, cause),
    )


def refused_code(table: Table, error: Exception) -> UserCodeError | None:
    """What a run says when Spark refuses the user's own words; None when they are not at fault."""
    spark = _spark_error(error)
    if isinstance(error, LodeError) or spark is None or not _condition(spark).startswith(_USERS_FAULT):
        return None
    facts = {key: str(value) for key, value in (spark.getMessageParameters() or {}).items()}
    if table.sql is not None and not _lines_at_fault(table, spark, facts):
        return None  # words of ours: the query was rewritten wrongly
    found = _of_spark(table, spark)
    return UserCodeError(f"{found.location}: {found.message}", why=found.why, fix=found.fix)


def _spark_error(error: BaseException | None) -> PySparkException | None:
    while error is not None:
        if isinstance(error, PySparkException) and _condition(error):
            return error
        error = error.__cause__ or error.__context__
    return None


def _of_spark(table: Table, error: PySparkException) -> Finding:
    facts = {key: str(value) for key, value in (error.getMessageParameters() or {}).items()}
    message, why, fix = _explained(_condition(error), facts, _first_sentence(error), table.sql or "")
    location = _query_line(table, error, facts) if table.sql is not None else _raised_at(table, error)
    return Finding("error", table.name, f"{table.name}: {message}", why, fix, location)


def _condition(error: PySparkException) -> str:
    return str(error.getCondition() or "")


def _first_words(error: Exception) -> str:
    """Of a call into Java the words of what Java threw: those of the call name nothing that a user knows."""
    thrown = getattr(error, "java_exception", None)
    text = str(thrown.getMessage() or thrown) if thrown is not None else str(error)
    return (text.strip() or type(error).__name__).splitlines()[0]


def _explained(condition: str, facts: dict[str, str], sentence: str, sql: str = "") -> tuple[str, str, str]:
    if condition.startswith(("UNRESOLVED_COLUMN", "UNRESOLVED_FIELD")):
        name = _plain(facts.get("objectName") or facts.get("fieldName", ""))
        offered = [_plain(one) for one in facts.get("proposal", "").split(", ") if one]
        short = [one.rpartition(".")[2] for one in offered]
        if sql and name.rpartition(".")[2].lower() in judged_names(sql):
            fix = f"add it to GROUP BY, take an aggregate of it such as max({name}), or choose rows before: WHERE"
            return f"HAVING names {name}, which is no column of the groups", f"they have {', '.join(short)}", fix
        close = nearest(name.rpartition(".")[2], short)
        why = f"the nearest are {', '.join(short)}" if short else "its inputs have no column that is like it"
        return f"{name} is no column of its inputs", why, f"did you mean {close}?" if close else "correct the name"
    if condition.startswith("UNRESOLVED_ROUTINE"):
        name = _plain(facts.get("routineName", ""))
        close = near_function(name.rpartition(".")[2].lower())
        fix = f"did you mean {close}?" if close else "use one of Spark's functions, or one that its catalog has"
        return f"there is no function {name}", "Spark knows none of that name", fix
    if condition.startswith("MISSING_AGGREGATION"):
        name = _plain(facts.get("expression", ""))
        fix = f"add {name} to GROUP BY, or say which: any_value({name})"
        return (
            f"{name} is neither grouped nor aggregated",
            "a group has many rows, and nothing says whose value it shows",
            fix,
        )
    if condition.startswith("DATATYPE_MISMATCH"):
        asked = facts.get("requiredType") or facts.get("expectedType", "")
        why = f"it takes {asked.strip()}, and gets {facts.get('inputType', 'another type')}" if asked else sentence
        return (
            f"{_plain(facts.get('sqlExpr', 'an expression'))} does not fit its types",
            why,
            "convert it, or name another column",
        )
    return sentence, f"Spark says {condition}", "correct the query" if condition else "correct it"


def _first_sentence(error: PySparkException) -> str:
    text = str(error.getMessage() or error).strip().splitlines()[0]
    text = re.sub(r"^\[[A-Z_.0-9]+\]\s*", "", text)
    return re.sub(r"\s*SQLSTATE: \w+.*$", "", text)[:300]


def _plain(text: str) -> str:
    return ".".join(one.replace("``", "`") for one in _NAMED.findall(text)) or text.strip('"')


def _query_line(table: Table, error: PySparkException, facts: dict[str, str]) -> Location:
    """The line of the user's own text: what ran may have been spliced, so the words at fault are looked for there."""
    found = _PLACE.search(str(error))
    said = int(found[1]) if found else None
    there = _lines_at_fault(table, error, facts)
    if there:
        return location_of(table, said if said in there else there[0])
    lines = (table.sql or "").splitlines()
    return location_of(table, said if said is not None and said <= len(lines) else 1)


def _lines_at_fault(table: Table, error: PySparkException, facts: dict[str, str]) -> list[int]:
    lines = [line.partition("--")[0] for line in (table.sql or "").splitlines()]
    for words in _words_at_fault(error, facts):
        pattern = r"\W+".join(map(re.escape, re.findall(r"\w+", words)))
        there = [
            n
            for n, line in enumerate(lines, 1)
            if pattern and re.search(rf"(?<!\w){pattern}(?!\w)", line, re.IGNORECASE)
        ]
        if there:
            return there
    return []


def _words_at_fault(error: PySparkException, facts: dict[str, str]) -> list[str]:
    found = [facts[key] for key in ("objectName", "routineName", "fieldName", "sqlExpr", "expression") if key in facts]
    contexts = [one.fragment() for one in error.getQueryContext() or [] if one.fragment()]
    names = [_plain(one).rpartition(".")[2] for one in found]
    return [*contexts, *map(_plain, found), *names]


def _raised_at(table: Table, error: BaseException) -> Location:
    """The last line of the user's own files on the way to the error."""
    lines = [
        Location(frame.filename, frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.lineno and _users(table, frame.filename)
    ]
    return lines[-1] if lines else table.location


def _users(table: Table, file: str) -> bool:
    """Files beside or below the pipeline, but no installed package."""
    folder, path = Path(table.location.file).parent, Path(file)
    installed = "site-packages" in path.parts or path.is_relative_to(_OURS)
    return str(path) == table.location.file or (path.is_relative_to(folder) and not installed)
