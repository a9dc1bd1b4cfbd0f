"""How fast the taxi generator is: columns, columns to JSON bytes, and to a real Kafka broker.

    python benchmarks/generator.py --json

The whole measured process is pinned to one core (client threads included); the broker has the others.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "examples" / "nyc_taxi"), str(ROOT / "src")]

from generator import ALL_DIRT, Dirt, ensure_topic, events, expected, open_sender, stream  # noqa: E402

from lodestream.config import load_config  # noqa: E402
from lodestream.runtime.broker import start_broker, stop_broker  # noqa: E402


def main() -> None:
    arguments = _arguments()
    dirt = ALL_DIRT if arguments.dirt else Dirt()
    with tempfile.TemporaryDirectory() as folder:
        # The broker starts before the pinning, so it does not inherit it.
        bootstrap = arguments.bootstrap or _broker(Path(folder))
        cores = _pin()
        try:
            result = measure(arguments.events, arguments.seed, dirt, bootstrap, arguments.runs)
        finally:
            os.sched_setaffinity(0, cores)
            if not arguments.bootstrap:
                stop_broker(load_config(Path(folder)))
    print(json.dumps(result) if arguments.json else "\n".join(f"{k:>20}  {v:,}" for k, v in result.items()))


def measure(n: int, seed: int, dirt: Dirt, bootstrap: str, runs: int) -> dict[str, float]:
    """The median of `runs` for each way, in events a second; the first run of each only warms up."""
    size = sum(batch.values.nbytes for batch in events(n, seed, dirt))
    columns = _rate(n, runs, lambda _: expected(n, seed, dirt))
    encode = _rate(n, runs, lambda _: sum(len(batch) for batch in events(n, seed, dirt)))
    cpu = time.process_time()
    produced = _rate(n, runs, lambda run: _produce(n, seed, dirt, bootstrap, f"bench.trips.{run}"))
    cpu = time.process_time() - cpu
    return {
        "events": n,
        "bytes_per_event": round(size / n),
        "columns_per_s": round(columns),
        "encode_per_s": round(encode),
        "events_per_s": round(produced),
        "events_per_cpu_s": round(n * (runs + 1) / cpu),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def _rate(n: int, runs: int, work) -> float:  # type: ignore[no-untyped-def]
    seconds = []
    for run in range(runs + 1):
        began = time.perf_counter()
        work(run)
        seconds.append(time.perf_counter() - began)
    return n / sorted(seconds[1:])[runs // 2]


def _produce(n: int, seed: int, dirt: Dirt, bootstrap: str, topic: str) -> None:
    """Until the broker has acknowledged every event."""
    ensure_topic(bootstrap, topic, 1)
    stream(events(n, seed, dirt), open_sender(bootstrap, topic))


def _broker(folder: Path) -> str:
    return start_broker(load_config(folder)).bootstrap


def _pin() -> set[int]:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    return cores


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--dirt", action="store_true", help="with duplicates, corrections and the rest")
    parser.add_argument("--bootstrap", help="a broker that runs already; without it, one is started")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
