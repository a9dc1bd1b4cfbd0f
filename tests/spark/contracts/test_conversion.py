"""Conversions on real Spark: exact, or the row fails; never a silent null."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from lodestream.contracts import Contract, Field, Reading
from lodestream.contracts.conform import conform

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILS = object()


@dataclass(frozen=True)
class Case:
    """An incoming SQL value, the type wanted, how it is read, and the text of the result (or FAILS, or None)."""

    given: str
    wanted: str
    reading: Reading
    result: object


def case(given: str, wanted: str, result: object, **reading: object) -> Case:
    return Case(given, wanted, Reading(**reading), result)  # type: ignore[arg-type]


WHOLE = [
    case("2147483647L", "int", "2147483647"),
    case("2147483648L", "int", FAILS),
    case("-129", "tinyint", FAILS),
    case("cast(NULL AS bigint)", "int", None),
    case("NULL", "int", None),
    case("1.0D", "int", "1"),
    case("1.5D", "int", FAILS),
    case("double('NaN')", "int", FAILS),
    case("double('Infinity')", "bigint", FAILS),
    case("9223372036854775807D", "bigint", FAILS),
    case("9007199254740993D", "bigint", "9007199254740992"),
    case("float(3)", "int", "3"),
    case("3.00BD", "int", "3"),
    case("3.01BD", "int", FAILS),
    case("99999999999999999999BD", "bigint", FAILS),
    case("'42'", "int", FAILS),
    case("'42'", "int", "42", coerce=True),
    case("' +42 '", "int", "42", coerce=True),
    case("'42.0'", "int", FAILS, coerce=True),
    case("''", "int", FAILS, coerce=True),
    case("'99999999999'", "int", FAILS, coerce=True),
    case("true", "int", FAILS, coerce=True),
]
DECIMALS = [
    case("12.34D", "decimal(10,2)", "12.34"),
    case("12.345D", "decimal(10,2)", FAILS),
    case("12.345D", "decimal(10,2)", "12.35", rounding="half_up"),
    case("-12.345D", "decimal(10,2)", "-12.35", rounding="half_up"),
    case("2.675D", "decimal(10,2)", "2.68", rounding="half_up"),
    case("123456789.00D", "decimal(10,2)", FAILS),
    case("99999999.995D", "decimal(10,2)", FAILS, rounding="half_up"),
    case("double('NaN')", "decimal(10,2)", FAILS, rounding="half_up"),
    case("double('-Infinity')", "decimal(10,2)", FAILS, rounding="half_up"),
    case("float(0.1)", "decimal(10,2)", "0.10"),
    case("0.999BD", "decimal(3,2)", FAILS),
    case("0.999BD", "decimal(3,2)", "1.00", rounding="half_up"),
    case("7", "decimal(10,2)", "7.00"),
    case("123456789", "decimal(10,2)", FAILS),
    case("'12.34'", "decimal(10,2)", FAILS),
    case("'12.34'", "decimal(10,2)", "12.34", coerce=True),
    case("'12.3400'", "decimal(10,2)", "12.34", coerce=True),
    case("'12.341'", "decimal(10,2)", FAILS, coerce=True),
    case("'12.345'", "decimal(10,2)", "12.35", coerce=True, rounding="half_up"),
    case("'1e3'", "decimal(10,2)", "1000.00", coerce=True, rounding="half_up"),
    case("'1e999999999'", "decimal(10,2)", FAILS, coerce=True, rounding="half_up"),
    case("'12,34'", "decimal(10,2)", FAILS, coerce=True),
]
REALS = [
    case("1.5D", "double", "1.5"),
    case("double('NaN')", "double", FAILS),
    case("double('Infinity')", "double", FAILS),
    case("double('NaN')", "double", "NaN", non_finite=True),
    case("float(0.5)", "double", "0.5"),
    case("0.1D", "float", FAILS),
    case("0.5D", "float", "0.5"),
    case("9007199254740993L", "double", FAILS),
    case("9223372036854775807L", "double", FAILS),
    case("9007199254740992L", "double", "9.007199254740992E15"),
    case("2147483647", "float", FAILS),
    case("0.10BD", "double", "0.1"),
    case("1234567890.1234567890BD", "double", FAILS),
    case("'1.5'", "double", "1.5", coerce=True),
    case("'1.5d'", "double", FAILS, coerce=True),
    case("'1e999'", "double", FAILS, coerce=True),
    case("'NaN'", "double", FAILS, coerce=True),
    case("'NaN'", "double", "NaN", coerce=True, non_finite=True),
]
OTHERS = [
    case("5", "string", FAILS),
    case("5", "string", "5", coerce=True),
    case("'true'", "boolean", FAILS),
    case("'TRUE'", "boolean", "true", coerce=True),
    case("'yes'", "boolean", FAILS, coerce=True),
    case("1", "boolean", "true", coerce=True),
    case("2", "boolean", FAILS, coerce=True),
]
WALL = [
    case("'2024-01-01T00:57:55'", "timestamp_ntz", "2024-01-01 00:57:55"),
    case("'2024-01-01 00:57:55.123456'", "timestamp_ntz", "2024-01-01 00:57:55.123456"),
    case("'2024-01-01T00:57'", "timestamp_ntz", "2024-01-01 00:57:00"),
    case("'2024-01-01T00:57:55,5'", "timestamp_ntz", "2024-01-01 00:57:55.5"),
    case("'2024-01-01T00:57:55.1234560'", "timestamp_ntz", "2024-01-01 00:57:55.123456"),
    case("'2024-01-01T00:57:55.1234567'", "timestamp_ntz", FAILS),
    case("'2024-01-01T00:57:55Z'", "timestamp_ntz", FAILS),
    case("'2024-01-01T05:57:55Z'", "timestamp_ntz", "2024-01-01 00:57:55", zone="America/New_York"),
    case("'2024-01-01T05:57Z'", "timestamp_ntz", "2024-01-01 00:57:00", zone="America/New_York"),
    case("'9999-12-31T23:59:59-05:00'", "timestamp_ntz", FAILS, zone="UTC"),
    case("'9999-12-31T23:59:59Z'", "timestamp_ntz", FAILS, zone="Europe/Berlin"),
    case("'9999-12-31T23:59:59Z'", "timestamp_ntz", "9999-12-31 18:59:59", zone="America/New_York"),
    case("'2024-01-01T00:57:55'", "timestamp_ntz", "2024-01-01 00:57:55", zone="America/New_York"),
    case("'2024-01-01'", "timestamp_ntz", FAILS),
    case("'2024-01-01'", "timestamp_ntz", "2024-01-01 00:00:00", coerce=True),
    case("'2024-13-01T00:00:00'", "timestamp_ntz", FAILS),
    case("'0000-01-01T00:00:00'", "timestamp_ntz", FAILS),
    case("'0001-01-01T00:00:00'", "timestamp_ntz", "0001-01-01 00:00:00"),
    case("'01/02/0000 00:00'", "timestamp_ntz", FAILS, format="dd/MM/yyyy HH:mm"),
    case("'31/12/9999 23:59'", "timestamp_ntz", "9999-12-31 23:59:00", format="dd/MM/yyyy HH:mm"),
    case("'2024-02-30T00:00:00'", "timestamp_ntz", FAILS),
    case("'noon'", "timestamp_ntz", FAILS),
    case("timestamp'2024-01-01 05:00:00Z'", "timestamp_ntz", FAILS),
    case("timestamp'2024-01-01 05:00:00Z'", "timestamp_ntz", "2024-01-01 00:00:00", zone="America/New_York"),
    case("date'2024-01-01'", "timestamp_ntz", "2024-01-01 00:00:00"),
    case("'31/01/2024 13:05'", "timestamp_ntz", "2024-01-31 13:05:00", format="dd/MM/yyyy HH:mm"),
    case("'31/01/2024 13:05 '", "timestamp_ntz", FAILS, format="dd/MM/yyyy HH:mm"),
    # Clocks in New York skip the first of these hours and repeat the second, also where the session stands there.
    case("'10/03/2024 02:30'", "timestamp_ntz", "2024-03-10 02:30:00", format="dd/MM/yyyy HH:mm"),
    case("timestamp'2024-11-03 05:30:00Z'", "timestamp_ntz", "2024-11-03 05:30:00", zone="UTC"),
    case("timestamp'2024-11-03 06:30:00Z'", "timestamp_ntz", "2024-11-03 06:30:00", zone="UTC"),
    case("'2024-11-03T06:30:00Z'", "timestamp_ntz", "2024-11-03 07:30:00", zone="Europe/Berlin"),
    case("1730615400000L", "timestamp_ntz", "2024-11-03 06:30:00", epoch="ms", zone="UTC"),
    case("'2024-01-31T13:05:00'", "timestamp_ntz", FAILS, format="dd/MM/yyyy HH:mm"),
]
INSTANTS = [
    case("'2024-01-01T00:57:55Z'", "timestamp", "2024-01-01 00:57:55"),
    case("'2024-01-01T00:57:55+01:00'", "timestamp", "2023-12-31 23:57:55"),
    case("'2024-01-01T00:57:55+0100'", "timestamp", "2023-12-31 23:57:55"),
    case("'2024-01-01T00:57:55-05'", "timestamp", "2024-01-01 05:57:55"),
    case("'2024-01-01T00:57+01:00'", "timestamp", "2023-12-31 23:57:00"),
    case("'2024-01-01 00:57Z'", "timestamp", "2024-01-01 00:57:00"),
    case("' 2024-01-01T00:57 -0530 '", "timestamp", "2024-01-01 06:27:00", zone="Europe/Berlin"),
    case("'2024-01-01T00:5+01:00'", "timestamp", FAILS),
    case("'2024-01-01T00+01:00'", "timestamp", FAILS),
    case("'2024-01-01Z'", "timestamp", FAILS, coerce=True),
    case("'2024-01-01T00:57:55'", "timestamp", FAILS),
    case("'2024-01-01T00:57:55'", "timestamp", "2024-01-01 05:57:55", zone="America/New_York"),
    case("'2024-03-10T02:30:00'", "timestamp", FAILS, zone="America/New_York"),
    case("'2024-11-03T01:30:00'", "timestamp", "2024-11-03 05:30:00", zone="America/New_York"),
    case("'2024-11-03T05:30:00'", "timestamp", "2024-11-03 05:30:00", zone="UTC"),
    case("'2024-11-03T06:30:00'", "timestamp", "2024-11-03 06:30:00", zone="UTC"),
    case("timestamp_ntz'2024-11-03 07:30:00'", "timestamp", "2024-11-03 06:30:00", zone="Europe/Berlin"),
    case("timestamp_ntz'2024-03-10 02:30:00'", "timestamp", "2024-03-10 02:30:00", zone="UTC"),
    case("'0001-01-01T00:00:00'", "timestamp", "0001-01-01 00:00:00", zone="UTC"),
    case("'9999-12-31T23:59:59'", "timestamp", FAILS, zone="America/New_York"),
    case("'9999-12-31T23:59:59-05:00'", "timestamp", FAILS),
    case("'9999-12-31T23:59:59+05:00'", "timestamp", "9999-12-31 18:59:59"),
    case("'0001-01-01T00:00:00+01:00'", "timestamp", FAILS),
    case("'0001-01-01T00:00:00+01:00'", "timestamp", FAILS, zone="UTC"),
    case("'9999-12-31T23:59:59.999999'", "timestamp", "9999-12-31 23:59:59.999999", zone="UTC"),
    case("timestamp_ntz'2024-03-10 02:30:00'", "timestamp", FAILS, zone="America/New_York"),
    case("timestamp_ntz'2024-07-01 00:00:00'", "timestamp", "2024-07-01 04:00:00", zone="America/New_York"),
    case("timestamp_ntz'2024-07-01 00:00:00'", "timestamp", FAILS),
    case("1704067200000L", "timestamp", FAILS),
    case("1704067200123L", "timestamp", "2024-01-01 00:00:00.123", epoch="ms"),
    case("1704067200L", "timestamp", "2024-01-01 00:00:00", epoch="s"),
    case("1704067200000001L", "timestamp", "2024-01-01 00:00:00.000001", epoch="us"),
    case("1.704067200123E12D", "timestamp", "2024-01-01 00:00:00.123", epoch="ms"),
    case("1704067200.5D", "timestamp", FAILS, epoch="s"),
    case("9223372036854775807L", "timestamp", FAILS, epoch="s"),
    case("-9223372036854775807L", "timestamp", FAILS, epoch="ms"),
    case("'1704067200123'", "timestamp", "2024-01-01 00:00:00.123", epoch="ms", coerce=True),
    case("1704067200123L", "timestamp_ntz", FAILS, epoch="ms"),
    case("1704067200000L", "timestamp_ntz", "2023-12-31 19:00:00", epoch="ms", zone="America/New_York"),
    case("'2024-01-31 13:05 +0100'", "timestamp", "2024-01-31 12:05:00", format="yyyy-MM-dd HH:mm Z"),
    case("'2024-01-31 13:05'", "timestamp", FAILS, format="yyyy-MM-dd HH:mm"),
]
DATES = [
    case("'2024-01-31'", "date", "2024-01-31"),
    case("'2024-01-31T00:00:00'", "date", FAILS),
    case("'2024-1-31'", "date", FAILS),
    case("'0000-12-31'", "date", FAILS),
    case("'31.12.0000'", "date", FAILS, format="dd.MM.yyyy"),
    case("'31.01.2024'", "date", "2024-01-31", format="dd.MM.yyyy"),
    case("timestamp_ntz'2024-01-31 00:00:00'", "date", "2024-01-31"),
    case("timestamp_ntz'2024-01-31 00:00:01'", "date", FAILS),
    case("1704067200000L", "date", "2024-01-01", epoch="ms", zone="UTC"),
    case("1704067200001L", "date", FAILS, epoch="ms", zone="UTC"),
]
NESTED = [
    case("named_struct('a', 1L, 'b', 'x')", "struct<a:int,b:string>", "{1, x}"),
    case("named_struct('a', 9999999999L, 'b', 'x')", "struct<a:int,b:string>", FAILS),
    case("named_struct('b', 'x')", "struct<a:int,b:string>", "{null, x}"),
    case("array(1L, NULL, 2L)", "array<int>", "[1, null, 2]"),
    case("array(1L, 9999999999L)", "array<int>", FAILS),
    case("array(1.0D, double('NaN'))", "array<double>", FAILS),
    case("map('k', 1L)", "map<string,int>", "{k -> 1}"),
    case("map('k', 9999999999L)", "map<string,int>", FAILS),
    case("map(1, 'v')", "map<string,string>", FAILS),
    case("array(struct('2024-01-01T01:02:03' AS t))", "array<struct<t:timestamp_ntz>>", "[{2024-01-01 01:02:03}]"),
    case("cast(NULL AS struct<a:bigint>)", "struct<a:int>", None),
]  # fmt: skip
ALL = WHOLE + DECIMALS + REALS + OTHERS + WALL + INSTANTS + DATES + NESTED


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_each_value_is_converted_exactly_or_fails(spark: SparkSession, ansi: str, zone: str) -> None:
    """Whatever the session's time zone and ANSI setting are, the contract alone decides."""
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", ansi)
    session.conf.set("spark.sql.session.timeZone", zone)
    incoming = session.range(1).selectExpr(*(f"{one.given} AS c{n}" for n, one in enumerate(ALL)))
    # Checkpointed so that the expressions run over columns, not folded constants.
    incoming = incoming.localCheckpoint()
    types = dict(incoming.dtypes)
    columns = []
    for number, one in enumerate(ALL):
        name = f"c{number}"
        contract = Contract("t", "1.0.0", (Field(name, one.wanted, reading=one.reading),))
        (found,) = conform(contract, {name: types[name]})
        value = found.value
        if one.wanted == "timestamp":
            value = f"TIMESTAMP_NTZ'1970-01-01' + INTERVAL '0.000001' SECOND * unix_micros({value})"
        columns += [f"cast({value} AS string) AS v{number}", f"{found.failed.sql} AS f{number}"]
    row = incoming.selectExpr(*columns).first()
    assert row is not None
    wrong = []
    for number, one in enumerate(ALL):
        got = FAILS if row[f"f{number}"] else row[f"v{number}"]
        if got != one.result or row[f"f{number}"] is None:
            seen = f"got {row[f'v{number}']}, failed {row[f'f{number}']}"
            wrong.append(f"{one.given} AS {one.wanted} {one.reading}: {seen}")
    assert wrong == []
