"""Rows on which declared code raises: found by halving the batch, so that one row does not stop the others.

Spark tells that a task failed, not on which row. Whatever failed is run again on halves of the rows until single rows
are left. A row that is found costs about log2(rows) small jobs; a batch without one costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lodestream.sources.codecs.frame import registry_failure

# Rows of one batch that may raise. Beyond that the code is wrong, not the rows: the flow stops.
MOST = 100
# Data exceptions (a bad cast, a division by zero), values beyond a limit, `raise_error`, and functions that failed.
_STATES = re.compile(r"SQLSTATE: (22...|54000|P0001|39000)\b")
# What Java itself throws over a value in a task (an overflow of `timestamp_millis`), and where: in an expression, not
# in what reads or writes files. Others, such as a null where none may be, are a fault of the engine and of no row.
_OF_LANG, _OF_UTIL = (
    r"lang\.(?:Arithmetic|NumberFormat|NegativeArraySize)",
    r"util\.(?:regex\.)?\w*(?:Format|Syntax)\w*",
)
_OF_VALUES = rf"java\.(?:{_OF_LANG}|{_OF_UTIL}|time\.[\w.]+)"
_THROWN = re.compile(rf"(?:Lost task [^\n]*?|\nCaused by): ({_OF_VALUES}Exception[^\n]*)\n((?:\tat [^\n]*\n?)+)")
_FRAME = re.compile(r"\tat (?!java|jdk|scala|sun)([^\n]*)")
_EVALUATION = ("org.apache.spark.sql.catalyst.", "org.apache.spark.sql.types.", "org.apache.spark.unsafe.")
_TRACE = "Traceback (most recent call last):"
_OURS = re.compile(r'  File "[^"]*/(?:pyspark|lodestream)/')
_LONGEST = 200

# The reason for which rows with marks from the first to the second (both included) fail, or None when they do not.
Probe = Callable[[int, int], str | None]


class TooManyRaise(Exception):
    """More rows raise than a batch may have."""

    def __init__(self, found: Sequence[Raising]) -> None:
        super().__init__(f"more than {len(found)} rows raise")
        self.found = tuple(found)


@dataclass(frozen=True, slots=True)
class Raising:
    """A row (and its exact copies) by its mark, and the last line of what it raised."""

    mark: int
    reason: str


def find_raising(marks: Sequence[int], probe: Probe, whole: str, *, most: int = MOST) -> list[Raising]:
    """The rows that raise, given all marks in order and the reason `whole` for which the batch failed."""
    if len(marks) > most and all(probe(mark, mark) for mark in _spread(marks)):
        raise TooManyRaise([Raising(marks[0], whole)])
    found: list[Raising] = []
    for one in _search(marks, probe, whole):
        found.append(one)
        if len(found) > most:
            raise TooManyRaise(found)
    return found


def _search(marks: Sequence[int], probe: Probe, reason: str) -> Iterator[Raising]:
    """These marks are known to fail."""
    if len(marks) == 1:
        yield Raising(marks[0], reason)
        return
    left, right = marks[: len(marks) // 2], marks[len(marks) // 2 :]
    wrong = probe(left[0], left[-1])
    if wrong is not None:
        yield from _search(left, probe, wrong)
        other = probe(right[0], right[-1])
        if other is not None:
            yield from _search(right, probe, other)
    else:
        # The failure is not on the left, so it is here, and the reason is that of the whole.
        yield from _search(right, probe, reason)


def _spread(marks: Sequence[int], samples: int = 8) -> list[int]:
    return [marks[place * (len(marks) - 1) // (samples - 1)] for place in range(samples)]


def raised_by_row(error: BaseException) -> str | None:
    """The last line of what declared code raised inside a task, or None when the failure is another one."""
    text = str(error)
    if registry_failure(error) is not None:
        return None
    if _TRACE in text:
        return _shortened(_trace(text)[-1])
    if _STATES.search(text) is None:
        return _thrown(text)
    said = next((line for line in text.splitlines() if _STATES.search(line)), text.strip().splitlines()[0])
    return _shortened(said.strip())


def _thrown(text: str) -> str | None:
    for thrown, frames in _THROWN.findall(text) if "Lost task" in text else ():
        first = _FRAME.search(frames)
        if first is not None and first[1].startswith(_EVALUATION):
            return _shortened(thrown)
    return None


def users_trace(error: BaseException) -> str:
    """The traceback as the user's own code saw it: without the frames of Spark's workers and ours."""
    lines = _trace(str(error)) if _TRACE in str(error) else [str(error).strip().splitlines()[0]]
    kept: list[str] = []
    skipped = False
    for line in lines:
        if line.startswith("  File "):
            skipped = _OURS.match(line) is not None
        elif not line.startswith("    "):
            skipped = False
        if not skipped:
            kept.append(line)
    return "\n".join(kept)


def _trace(text: str) -> list[str]:
    lines = (_TRACE + text.rpartition(_TRACE)[2]).splitlines()
    ends = [place for place, line in enumerate(lines) if line.startswith(("\tat ", "JVM stacktrace:"))]
    return [line for line in lines[: min(ends, default=len(lines))] if line.strip()]


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
