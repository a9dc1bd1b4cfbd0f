"""Decoding in Spark: the JVM's decoder and the Python codec give the same rows, and from_json's where it can."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json

from lodestream import Json, Raw
from lodestream.contracts.model import Field, Reading
from lodestream.sources.codecs import Codec, codec_for, decode_frame
from lodestream.sources.codecs.frame import _in_workers

SEED = 20240131
EVERYTHING = (
    "flag boolean, tiny tinyint, small smallint, n int, big bigint, ratio float, x double, price decimal(6,2), "
    "wide decimal(38,10), name string, raw binary, day date, at timestamp, wall timestamp_ntz, list array<int>, "
    "inner struct<a:int,b:struct<c:string>>, counts map<string,int>, items array<struct<k:string,v:double>>"
)
COORDINATES = (
    "key binary, value binary, headers array<struct<key:string,value:binary>>, topic string, "
    "`partition` int, `offset` bigint, `timestamp` timestamp"
)
ZONES = ("Z", "+01:00", "-0930", " +14", "", "+19")
SECONDS = ("", ":07", ":07.25", ":07,1234567")
AT = datetime(2024, 1, 1, tzinfo=UTC)


def bronze(spark: SparkSession, values: Sequence[bytes | None]) -> DataFrame:
    rows = [
        (b"k", None if value is None else bytearray(value), [("h", bytearray(b"\0"))], "t", 0, place, AT)
        for place, value in enumerate(values)
    ]
    return spark.createDataFrame(rows, COORDINATES)


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    return bool(left == right)


def plain(value: Any) -> Any:
    """Maps as dicts and instants without their zone, so that both engines' Python values compare."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return value


def assert_engines_agree(spark: SparkSession, codec: Codec, values: Sequence[bytes | None]) -> int:
    columns, errors = codec.decode(pa.array(values, pa.binary()))
    found = decode_frame(bronze(spark, values), codec).orderBy("_lode.offset").collect()
    assert len(found) == len(values)
    for row, expected, error, value in zip(found, columns.to_pylist(), errors.to_pylist(), values, strict=True):
        got = row.asDict(recursive=True)
        assert (got.pop("_error") is None) == (error is None), (value, row._error, error)
        assert got.pop("_lode")["value"] == value
        for name, wanted in expected.items():
            assert same(plain(got[name]), plain(wanted)), (value, name, got[name], wanted)
    return errors.null_count


def valid_event(rng: random.Random) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "flag": rng.random() < 0.5,
        "tiny": rng.randint(-128, 127),
        "small": rng.randint(-(2**15), 2**15 - 1),
        "n": rng.randint(-(2**31), 2**31 - 1),
        "big": rng.choice([rng.randint(-(2**63), 2**63 - 1), rng.randint(-999, 999)]),
        "ratio": rng.uniform(-1e6, 1e6),
        "x": rng.choice([rng.uniform(-1, 1) * 10 ** rng.randint(-320, 308), round(rng.uniform(0, 99), 2), 5]),
        "price": rng.randint(-999999, 999999) / 100,
        "name": "".join(chr(rng.choice([65, 34, 92, 10, 0, 0xE9, 0x20AC, 0x1F600])) for _ in range(rng.randint(0, 6))),
        "raw": "AAEC",
        "day": f"{rng.randint(1, 9999):04d}-{rng.randint(1, 12):02d}-{rng.randint(1, 31):02d}",
        "at": f"2024-{rng.randint(1, 12):02d}-28T10:{rng.randint(0, 61):02d}:00{rng.choice(ZONES)}",
        "wall": f"2024-02-{rng.randint(1, 30):02d} {rng.randint(0, 24):02d}:00{rng.choice(SECONDS)}",
        "list": [rng.randint(0, 9) for _ in range(rng.randint(0, 3))],
        "inner": {"a": 1, "b": {"c": "x", "d": [1, {}]}},
        "counts": {"a": 1, "b": None},
        "items": [{"k": "x", "v": 1.5}, {"v": rng.choice([1, "1", None])}],
        "unknown": {"deep": [[1, {"a": None}], "x"]},
    }
    keys = rng.sample(list(whole), rng.randint(1, len(whole)))
    return {key: None if rng.random() < 0.05 else whole[key] for key in keys}


def mutated(rng: random.Random, value: bytes) -> bytes:
    """One small harm: a byte changed, removed, doubled or put in, or the tail cut off."""
    place = rng.randrange(len(value))
    letter = bytes([rng.choice([*b'"{}[],:0123456789eE+-.tfnN \\u', rng.randrange(256)])])
    return rng.choice(
        [
            value[:place] + letter + value[place + 1 :],
            value[:place] + value[place + 1 :],
            value[:place] + value[place:] * 2,
            value[:place] + letter + value[place:],
            value[:place],
            value[:place] + value[place:].swapcase(),
        ]
    )


def test_both_engines_read_the_same_from_thousands_of_damaged_events(spark: SparkSession) -> None:
    rng = random.Random(SEED)
    values: list[bytes | None] = [None, b""]
    for _ in range(6000):
        text = json.dumps(
            valid_event(rng), ensure_ascii=rng.random() < 0.5, separators=rng.choice([(",", ":"), (", ", ": ")])
        )
        values.append(text.encode() if rng.random() < 0.3 else mutated(rng, text.encode()))
    good = assert_engines_agree(spark, codec_for(Json(EVERYTHING)), values)
    assert 500 < good < 5500, "the cases must hold both good and broken rows"


def test_both_engines_agree_on_arbitrary_bytes(spark: SparkSession) -> None:
    rng = random.Random(SEED)
    letters = b'{}[]":,\\ntrue false null 0123456789.eE+-NaNInfinity\n\t \x00\xff\xc3\xa9a'
    values = [bytes(rng.choices(letters, k=rng.randrange(1, 30))) for _ in range(4000)]
    values += [b'{"n":' + value + b"}" for value in values]
    assert_engines_agree(spark, codec_for(Json("n int, a double")), values)


@pytest.mark.parametrize(
    "value",
    [
        b'{"n": "1", "x": "abc"}',
        b'{"N": 1}',
        b'{"n": 1, "n": 2}',
        b'{"list": [1, "x"], "inner": {"b": {"c": 5}}, "counts": {"k": 1.5}}',
        b'{"at": "2024-01-01T00:00:00", "wall": "2024-01-01T00:00:00Z"}',
        b'{"price": 1.555, "wide": 1e30}',
        b'{"n": "' + "é€😀".encode() * 30 + b'"}',
        b'{"n":' + b"[" * 200,
        b'{"list": [' + b"1," * 300_000 + b"1]}",
        b" " * (16 * 1024 * 1024 + 1),
        b'{"x": 1e99999, "x2": NaN, "name": "\\ud800"}',
    ],
)
def test_both_engines_give_the_same_reason(spark: SparkSession, value: bytes) -> None:
    codec = codec_for(Json(EVERYTHING))
    _, errors = codec.decode(pa.array([value], pa.binary()))
    assert decode_frame(bronze(spark, [value]), codec).first()["_error"] == errors[0].as_py()  # type: ignore[index]


def test_a_contracts_names_and_readings_reach_the_jvm(spark: SparkSession) -> None:
    fields = (
        Field("vendor_id", "int", source="VendorID", aliases=("vendor",)),
        Field("fare", "decimal(10,2)", reading=Reading(coerce=True)),
        Field("Flag", "string", reading=Reading(any_case=True)),
        Field("speed", "double", reading=Reading(non_finite=True)),
        Field("total", "decimal(18,2)", reading=Reading(rounding="half_up")),
        Field("parts", "array<decimal(4,1)>", reading=Reading(rounding="half_up")),
    )
    values = [
        b'{"VendorID": 1, "fare": 1.50, "FLAG": "N", "speed": -Infinity}',
        b'{"vendor": 2, "fare": "1.50", "Flag": "Y", "speed": NaN}',
        b'{"vendor": 2, "VendorID": 2}',
        b'{"flag": "Y", "FLAG": "N"}',
        b'{"fare": true}',
        b'{"fare": {}}',
        b'{"fare": NaN}',
        b'{"total": 1234567890123456.78, "parts": [1.05, -0.05, 99.94]}',
        b'{"total": 1234567890123456.785, "parts": [1e-5000]}',
        b'{"total": 9999999999999999.995}',
        b'{"total": "1.5"}',
    ]
    assert assert_engines_agree(spark, codec_for(Json(), fields), values) == 6


TAXI = (
    "VendorID int, tpep_pickup_datetime timestamp_ntz, passenger_count int, trip_distance double, "
    "store_and_fwd_flag string, PULocationID int, fare_amount double, total_amount double"
)


def test_the_rows_are_those_of_from_json(spark: SparkSession) -> None:
    """Where from_json would give a null for a value that is there, we give a reason; all else is equal."""
    rng = random.Random(SEED)
    values = []
    for _ in range(2000):
        event = {
            "VendorID": rng.choice([1, 2, None]),
            "tpep_pickup_datetime": f"2024-01-{rng.randint(1, 31):02d}T{rng.randint(0, 23):02d}:05:07",
            "passenger_count": rng.choice([1, 2, None]),
            "trip_distance": round(rng.uniform(0, 30), 2),
            "store_and_fwd_flag": rng.choice(["N", "Y", None]),
            "fare_amount": rng.choice([round(rng.uniform(-10, 90), 2), "abc", None] if rng.random() < 0.1 else [12.5]),
            "total_amount": rng.uniform(0, 1e9),
        }
        text = json.dumps(event).encode()
        values.append(text[: rng.randrange(len(text))] if rng.random() < 0.05 else text)
    frame = bronze(spark, values)
    ours = decode_frame(frame, codec_for(Json(TAXI))).orderBy("_lode.offset").drop("_lode").collect()
    parsed = from_json(col("value").cast("string"), TAXI + ", _corrupt_record string").alias("d")
    theirs = frame.select(parsed, "offset").orderBy("offset").select("d.*").collect()
    broken = 0
    for mine, spark_row in zip(ours, theirs, strict=True):
        expected = spark_row.asDict()
        corrupt = expected.pop("_corrupt_record")
        got = mine.asDict()
        assert (got.pop("_error") is not None) == (corrupt is not None), (mine, spark_row)
        broken += corrupt is not None
        if corrupt is None:
            assert got == expected
    assert 100 < broken < 500


def test_a_filter_does_not_decode_twice(spark: SparkSession) -> None:
    good = decode_frame(bronze(spark, [b'{"n": 1}']), codec_for(Json("n int"))).where("_error IS NULL").select("n")
    plan = good._jdf.queryExecution().executedPlan().toString()
    assert plan.count("applyfunctionexpression") == 1


def test_bronze_columns_come_along_untouched(spark: SparkSession) -> None:
    frame = bronze(spark, [b'{"value": 1, "topic": "x"}', b"\xff"])
    decoded = decode_frame(frame, codec_for(Json("value int, topic string")))
    assert decoded.columns == ["value", "topic", "_lode", "_error"]
    assert decoded.select("_lode.*").schema.simpleString() == frame.schema.simpleString()
    assert decoded.select("_lode.*").collect() == frame.collect()


def test_python_workers_give_the_same_frame(spark: SparkSession) -> None:
    """The way of codecs without a JVM decoder, and of Spark Connect."""
    frame = bronze(spark, [b'{"n": 1, "at": "2024-01-01T00:00:00Z"}', b'{"n": "x"}', None])
    codec = codec_for(Json("n int, at timestamp"))
    here, there = decode_frame(frame, codec), _in_workers(frame, codec, "value")
    assert here.schema.simpleString() == there.schema.simpleString()
    assert here.orderBy("_lode.offset").collect() == there.orderBy("_lode.offset").collect()


def test_raw_bytes_stay_as_they_are(spark: SparkSession) -> None:
    rows = decode_frame(bronze(spark, [b"\0\xff", None]), codec_for(Raw())).orderBy("_lode.offset").collect()
    assert [(row.value, row._error) for row in rows] == [(b"\0\xff", None), (None, None)]
