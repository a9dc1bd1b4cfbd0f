"""How fast JSON is decoded: ours against Spark's from_json, over the same taxi events, some of them malformed.

    python benchmarks/decode.py --json

Both read the same Parquet files of Bronze rows, keep the raw row beside the columns and mark the broken rows; they
take turns, so a noisy machine slows both. `same_rows` says that both give the same good rows and mark the same others.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "examples" / "nyc_taxi"), str(ROOT / "src")]

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from generator import Dirt, events  # noqa: E402
from pyspark.sql import DataFrame, SparkSession  # noqa: E402
from pyspark.sql.functions import col, from_json, struct  # noqa: E402

from lodestream import Json  # noqa: E402
from lodestream.config import Config  # noqa: E402
from lodestream.runtime.session import start_session  # noqa: E402
from lodestream.sources.codecs import codec_for, decode_frame  # noqa: E402

MONEY = "fare_amount extra mta_tax tip_amount tolls_amount improvement_surcharge total_amount congestion_surcharge"
TRIP = (
    "VendorID int, tpep_pickup_datetime timestamp_ntz, tpep_dropoff_datetime timestamp_ntz, passenger_count int, "
    "trip_distance double, RatecodeID int, store_and_fwd_flag string, PULocationID int, DOLocationID int, "
    "payment_type int, " + ", ".join(f"{name} double" for name in [*MONEY.split(), "Airport_fee"])
)
CODEC = codec_for(Json(TRIP))
Decode = Callable[[DataFrame], DataFrame]


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        spark = start_session(Config(root=Path(folder)), app_name="benchmark")
        try:
            result = measure(spark, Path(folder), arguments.events, arguments.runs)
        finally:
            spark.stop()
    print(json.dumps(result) if arguments.json else "\n".join(f"{name:>22}  {value}" for name, value in result.items()))


def measure(spark: SparkSession, folder: Path, events_wanted: int, runs: int) -> dict[str, float | int | bool]:
    large = _bronze(spark, folder / "large", events_wanted, files=2)
    small = _bronze(spark, folder / "small", 1000, files=1)
    same, broken = _same_rows(large)
    scan, ours, theirs = _alternate(large, runs)
    _, small_ours, small_theirs = _alternate(small, max(10 * runs, 30))
    return {
        "ratio": round(theirs / ours, 2),
        "ratio_without_scan": round((theirs - scan) / max(ours - scan, 0.001), 2),
        "ours_s": round(ours, 3),
        "from_json_s": round(theirs, 3),
        "scan_s": round(scan, 3),
        "events": events_wanted,
        "broken": broken,
        "same_rows": same,
        "small_batch_ours_ms": round(small_ours * 1000, 1),
        "small_batch_from_json_ms": round(small_theirs * 1000, 1),
    }


def _bronze(spark: SparkSession, folder: Path, wanted: int, files: int) -> DataFrame:
    folder.mkdir()
    values = pa.concat_arrays([batch.values for batch in events(wanted, seed=7, dirt=Dirt(malformed=0.002))])
    rows = pa.table(
        {
            "key": pa.nulls(wanted, pa.binary()),
            "value": values,
            "topic": pa.repeat("taxi.trips", wanted),
            "partition": pa.repeat(pa.scalar(0, pa.int32()), wanted),
            "offset": pa.array(range(wanted), pa.int64()),
            "timestamp": pa.repeat(pa.scalar(1704067200000000, pa.timestamp("us", "UTC")), wanted),
        }
    )
    for place in range(files):
        part = rows.slice(place * wanted // files, wanted // files)
        pq.write_table(part, folder / f"{place}.parquet", compression="none", use_dictionary=False)
    return spark.read.parquet(str(folder))


def _scan(bronze: DataFrame) -> DataFrame:
    return bronze.select(struct(*bronze.columns).alias("_lode"))


def _ours(bronze: DataFrame) -> DataFrame:
    return decode_frame(bronze, CODEC)


def _from_json(bronze: DataFrame) -> DataFrame:
    parsed = from_json(col("value").cast("string"), f"{TRIP}, _corrupt_record string")
    return bronze.select(parsed.alias("d"), struct(*bronze.columns).alias("_lode")).select("d.*", "_lode")


def _same_rows(bronze: DataFrame) -> tuple[bool, int]:
    """Whether both give the same good rows and mark the same others, and how many those are."""
    names = [column.name for column in CODEC.shape.columns]
    ours = _ours(bronze).select(col("_lode.offset").alias("at"), "_error", struct(*names).alias("ours"))
    theirs = _from_json(bronze)
    theirs = theirs.select(col("_lode.offset").alias("at"), "_corrupt_record", struct(*names).alias("theirs"))
    # from_json does not mark an empty message: there is nothing to show as its corrupt record.
    counted = (
        ours.join(theirs, "at")
        .selectExpr(
            "count_if(_error IS NULL AND NOT (ours <=> theirs)) AS different",
            "count_if((_error IS NULL) <> (_corrupt_record IS NULL) AND _error <> 'json: empty value') AS unmarked",
            "count_if(_error IS NOT NULL) AS broken",
        )
        .first()
    )
    assert counted is not None
    return counted.different == 0 and counted.unmarked == 0, counted.broken


def _alternate(bronze: DataFrame, runs: int) -> tuple[float, float, float]:
    ways: tuple[Decode, ...] = (_scan, _ours, _from_json)
    times: list[list[float]] = [[] for _ in ways]
    for run in range(runs + 3):
        for way, taken in zip(ways, times, strict=True):
            started = time.perf_counter()
            way(bronze).write.format("noop").mode("overwrite").save()
            if run >= 3:
                taken.append(time.perf_counter() - started)
    scan, ours, theirs = (statistics.median(taken) for taken in times)
    return scan, ours, theirs


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=300_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


if __name__ == "__main__":
    main()
