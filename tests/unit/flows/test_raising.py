"""Halving finds exactly the rows that raise, with few tries."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodestream.flows.judging.raising import TooManyRaise, find_raising, raised_by_row, users_trace

ROWS = 1000


class Tried:
    """Rows 0 to 999, some of which raise; counts how often the code is run."""

    def __init__(self, bad: set[int]) -> None:
        self.bad = bad
        self.probes = 0

    def __call__(self, first: int, last: int) -> str | None:
        self.probes += 1
        hit = [mark for mark in sorted(self.bad) if first <= mark <= last]
        return f"ValueError: {hit[0]}" if hit else None


@given(st.sets(st.integers(0, ROWS - 1), min_size=1, max_size=30))
def test_exactly_the_rows_that_raise_are_found_each_with_its_own_reason(bad: set[int]) -> None:
    probe = Tried(bad)
    found = find_raising(range(ROWS), probe, probe(0, ROWS - 1) or "")
    assert {(one.mark, one.reason) for one in found} == {(mark, f"ValueError: {mark}") for mark in bad}
    assert probe.probes <= 2 + 8 + 2 * len(bad) * math.ceil(math.log2(ROWS))


def test_one_row_of_a_thousand_takes_about_ten_tries() -> None:
    probe = Tried({617})
    find_raising(range(ROWS), probe, "ValueError: 617")
    assert probe.probes <= 8 + 10


def test_code_that_raises_on_every_row_is_given_up_at_once() -> None:
    probe = Tried(set(range(ROWS)))
    with pytest.raises(TooManyRaise):
        find_raising(range(ROWS), probe, "ValueError: 0")
    assert probe.probes == 8


def test_a_small_batch_may_raise_on_every_row() -> None:
    probe = Tried({0, 1, 2})
    assert len(find_raising(range(3), probe, "ValueError: 0")) == 3


def test_more_rows_than_a_batch_may_have_stop_the_search() -> None:
    probe = Tried(set(range(0, ROWS, 3)))
    with pytest.raises(TooManyRaise) as stopped:
        find_raising(range(ROWS), probe, "ValueError: 0", most=20)
    assert len(stopped.value.found) == 21


PYTHON = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/venv/lib/python3.12/site-packages/pyspark/worker.py", line 1, in main
    process()
  File "/home/me/pipeline.py", line 7, in cents
    return int(text)
           ^^^^^^^^^
ValueError: invalid literal for int() with base 10: 'x'

JVM stacktrace:
org.apache.spark.api.python.PythonException
\tat org.apache.spark.api.python.BasePythonRunner
"""


def test_the_reason_is_the_last_line_of_the_users_traceback() -> None:
    assert raised_by_row(Exception(PYTHON)) == "ValueError: invalid literal for int() with base 10: 'x'"
    trace = users_trace(Exception(PYTHON))
    assert "pipeline.py" in trace
    assert "worker.py" not in trace
    assert "\tat " not in trace


THROWN = """An error occurred while calling o1.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Lost task 0.0 in stage 0.0 (TID 0): {thrown}
\tat java.base/java.lang.Math.multiplyExact(Math.java:1004)
\tat {frame}(Unknown Source)
\tat org.apache.spark.sql.catalyst.expressions.GeneratedClass$Iterator.processNext(Unknown Source)
"""
EVALUATED = "org.apache.spark.sql.catalyst.util.DateTimeUtils.millisToMicros"


@pytest.mark.parametrize(
    ("thrown", "frame", "by_row"),
    [
        ("java.lang.ArithmeticException: long overflow", EVALUATED, True),
        ("java.lang.ArithmeticException: long overflow", "org.apache.iceberg.io.TaskWriter.write", False),
        ("java.time.DateTimeException: Invalid value for Year", EVALUATED, True),
        ("java.util.IllegalFormatConversionException: d != java.lang.String", EVALUATED, True),
        ("java.lang.NullPointerException: value is null", EVALUATED, False),
        ("java.lang.ClassCastException: class A cannot be cast", EVALUATED, False),
        ("java.io.UncheckedIOException: no space left", EVALUATED, False),
        ("java.lang.OutOfMemoryError: Java heap space", EVALUATED, False),
    ],
)
def test_what_java_throws_in_an_expression_is_of_a_row(thrown: str, frame: str, by_row: bool) -> None:
    found = raised_by_row(Exception(THROWN.format(thrown=thrown, frame=frame)))
    assert found == (thrown if by_row else None)


def test_what_java_throws_outside_a_task_is_of_no_row() -> None:
    planned = THROWN.format(thrown="java.lang.ArithmeticException: long overflow", frame=EVALUATED)
    assert raised_by_row(Exception(planned.replace("Lost task 0.0 in stage 0.0 (TID 0)", "planning failed"))) is None


def test_data_exceptions_of_sql_are_rows_and_others_are_not() -> None:
    assert raised_by_row(Exception("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012")) is not None
    assert raised_by_row(Exception("[TABLE_OR_VIEW_NOT_FOUND] no. SQLSTATE: 42P01")) is None
    assert raised_by_row(Exception("Job aborted: No space left on device")) is None
