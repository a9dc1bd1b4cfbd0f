"""Many random queries on every core, with progress, seed and time; failures are shrunk and told apart.

python tests/gold_queries/long_run.py                              2,000 queries, a new seed
LODE_QUERIES=100000 LODE_SEED=7 python tests/gold_queries/long_run.py
LODE_SEED=7 LODE_FIRST=4711 LODE_QUERIES=1 python tests/gold_queries/long_run.py   one query of a run again
"""

from __future__ import annotations

import os
import random
import re
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from query_check import case_of, check
from query_shrink import shrunk, told

SEED = int(os.environ.get("LODE_SEED", "0")) or random.SystemRandom().randrange(1, 10**9)
QUERIES = int(os.environ.get("LODE_QUERIES", "2000"))
FIRST = int(os.environ.get("LODE_FIRST", "0"))
SHRINK = float(os.environ.get("LODE_SHRINK", "8"))  # seconds a failure
AT_ONCE = 250
DIED = "the oracle died"
STATUSES = ("same", "skipped", "different", "broken", "refused", "crashed", DIED)
_own = threading.local()
Part = tuple[Counter[str], dict[str, str]]


def part(first: int, count: int) -> Part:
    """How the queries of one part went, and what failed, each shape of failure once."""
    went: Counter[str] = Counter()
    failures: dict[str, str] = {}
    for number in range(first, first + count):
        case = case_of(SEED, number)
        outcome = check(case)
        went[outcome.status] += 1
        went[outcome.strategy or "no plan"] += 1
        if outcome.fault:
            small, said = shrunk(case, outcome, seconds=SHRINK)
            failures.setdefault(shape(small.sql, said.status), told(small, said))
    return went, failures


def apart(first: int, count: int) -> Part:
    """A part in this thread's own process: a query of which DuckDB dies, as it does at times, ends that one alone."""
    process = getattr(_own, "process", None) or ProcessPoolExecutor(1)
    _own.process = process
    try:
        return process.submit(part, first, count).result()
    except BrokenProcessPool:
        _own.process = None
    if count == 1:
        return Counter({DIED: 1}), {f"{DIED} {first}": f"DuckDB died of query {first}:\n{case_of(SEED, first).sql}"}
    went, failures = apart(first, count // 2)
    more, others = apart(first + count // 2, count - count // 2)
    return went + more, failures | others


def shape(sql: str, status: str) -> str:
    """Queries that differ in names and numbers alone have one shape."""
    plain = re.sub(r"'[^']*'", "'", sql.lower())
    return status + re.sub(r"\b(silver\.\w+|[a-z]\w{0,2}|zone|cat|qty|fare|rate|location|\d+(\.\d+)?)\b", "_", plain)


def main() -> int:
    began = time.monotonic()
    went: Counter[str] = Counter()
    failures: dict[str, str] = {}
    say(f"LODE_SEED={SEED} LODE_QUERIES={QUERIES} LODE_FIRST={FIRST}")
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        starts = range(FIRST, FIRST + QUERIES, AT_ONCE)
        parts = [workers.submit(apart, start, min(AT_ONCE, FIRST + QUERIES - start)) for start in starts]
        for done in as_completed(parts):
            counted, found = done.result()
            went += counted
            for key, text in found.items():
                if key not in failures:
                    say(f"\n{text}\n")
                failures.setdefault(key, text)
            total = sum(
                went[status] for status in ("same", "skipped", "different", "broken", "refused", "crashed", DIED)
            )
            say(f"{total} queries, {len(failures)} shapes of failure, {time.monotonic() - began:.0f} s")
    say(f"seed {SEED}: {dict(went)} in {time.monotonic() - began:.0f} s")
    return 1 if failures else 0


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
