"""Exact conversion of one value: SQL for the converted value, and SQL that is true where it could not be exact.

A conversion is exact when the incoming value can be recovered from the result. What is not exact must be stated in
the contract (`rounding`, `coerce`, `zone`, `epoch`, `non_finite`), or the row is a dead letter; never a silent null.
"""

from __future__ import annotations

from dataclasses import dataclass

from lodestream.contracts import moments, quoting
from lodestream.contracts.model import Reading
from lodestream.contracts.types import INTEGRAL, TEMPORAL, Type

_WHOLE_TEXT = "^[+-]?[0-9]+$"
_REAL_TEXT = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"
_NON_FINITE_TEXT = "^(NaN|[+-]?Infinity)$"
# The largest values below 2^63 that a double and a float hold: above them a cast back to bigint saturates.
_LARGEST = {"double": 9223372036854774784, "float": 9223371487098961920}


# JSON with every digit of a time and every null, which Spark leaves out by itself.
_INSTANT, _WALL = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_EXACT = (
    f"map('timestampFormat', {quoting.text(_INSTANT)},"
    f" 'timestampNTZFormat', {quoting.text(_WALL)}, 'ignoreNullFields', 'false')"
)


@dataclass(frozen=True, slots=True)
class Conversion:
    """`failed` is never null. `refusal` says why no value of that type can be converted, or is None."""

    value: str
    failed: str = "false"
    refusal: str | None = None

    def also(self, *conditions: str) -> Conversion:
        """Fails also where one of the conditions is true."""
        parts = [part for part in (self.failed, *conditions) if part != "false"]
        return Conversion(self.value, " OR ".join(f"({part})" for part in parts) or "false", self.refusal)


def tried(value: str, attempt: str) -> Conversion:
    return Conversion(attempt, f"({value} IS NOT NULL AND {attempt} IS NULL)")


def refused(value: str, kind: Type, why: str) -> Conversion:
    return Conversion(f"cast(NULL AS {kind})", f"({value} IS NOT NULL)", why)


def convert(value: str, incoming: Type, wanted: Type, reading: Reading) -> Conversion:
    """One plain value; nested types are taken apart by `conform`."""
    if incoming.name == "void":
        return Conversion(f"cast(NULL AS {wanted})")
    if incoming.name in ("varchar", "char"):
        incoming = Type("string")
    if wanted.name in TEMPORAL:
        return _moment(value, incoming, wanted, reading)
    found = _plain(value, incoming, wanted, reading)
    if wanted.name in ("float", "double") and not reading.non_finite and found.refusal is None:
        return found.also(_not_finite(found.value))
    return found


def _plain(value: str, incoming: Type, wanted: Type, reading: Reading) -> Conversion:
    if incoming == wanted:
        return Conversion(value)
    if incoming.name == "string" and wanted.name != "string":
        return _from_text(value, wanted, reading)
    if wanted.integral and incoming.numeric:
        return _to_whole(value, incoming, wanted)
    if wanted.name == "decimal" and incoming.numeric:
        return _to_decimal(value, incoming, wanted, reading)
    if wanted.name in ("float", "double") and incoming.numeric:
        return _to_real(value, incoming, wanted)
    if wanted.name == "string" and reading.coerce:
        return Conversion(f"to_json({value}, {_EXACT})" if incoming.nested else f"cast({value} AS string)")
    if wanted.name == "boolean" and incoming.integral and reading.coerce:
        return tried(value, f"CASE {value} WHEN 1 THEN true WHEN 0 THEN false END")
    return refused(value, wanted, _why(incoming, wanted))


def _why(incoming: Type, wanted: Type) -> str:
    hint = "; declare lode.coerce to allow it" if wanted.name == "string" else ""
    return f"{incoming} is not converted to {wanted}{hint}"


def _not_finite(value: str) -> str:
    return f"coalesce(isnan({value}) OR abs({value}) = cast('Infinity' AS double), false)"


def _to_whole(value: str, incoming: Type, wanted: Type) -> Conversion:
    if incoming.integral:
        if INTEGRAL[incoming.name] <= INTEGRAL[wanted.name]:
            return Conversion(f"cast({value} AS {wanted})")
        return tried(value, f"try_cast({value} AS {wanted})")
    if incoming.name == "decimal":
        return tried(value, f"try_cast({value} AS {wanted})").also(f"coalesce(ceil({value}) <> floor({value}), false)")
    double = f"cast({value} AS double)"
    found = tried(value, f"try_cast({double} AS {wanted})").also(f"coalesce({double} <> rint({double}), false)")
    if wanted.name != "bigint":
        return found
    return found.also(f"coalesce({double} >= 9223372036854775808D, false)")


def _to_decimal(value: str, incoming: Type, wanted: Type, reading: Reading) -> Conversion:
    """Casts round half up, so without that word in the contract the result must give the value back."""
    found = tried(value, f"try_cast({value} AS {wanted})")
    if reading.rounding == "half_up" or incoming.integral:
        return found
    return found.also(f"NOT (try_cast({found.value} AS {incoming}) <=> {value})")


def _to_real(value: str, incoming: Type, wanted: Type) -> Conversion:
    if incoming.name == "float" or (incoming.integral and _fits(incoming, wanted)):
        return Conversion(f"cast({value} AS {wanted})")
    found = Conversion(f"cast({value} AS {wanted})")
    if incoming.integral:
        back = f"NOT (try_cast({found.value} AS {incoming}) <=> {value})"
        return found.also(back, f"coalesce({value} > {_largest(incoming, wanted)}L, false)")
    return found.also(f"NOT (try_cast({found.value} AS {incoming}) <=> {value})")


def _fits(incoming: Type, wanted: Type) -> bool:
    return INTEGRAL[incoming.name] <= (32 if wanted.name == "double" else 16)


def _largest(incoming: Type, wanted: Type) -> int:
    # 2147483520 is the largest int a float holds: above it the cast back saturates.
    return 2147483520 if incoming.name == "int" else _LARGEST[wanted.name]


def _from_text(value: str, wanted: Type, reading: Reading) -> Conversion:
    if not reading.coerce:
        return refused(value, wanted, f"text is not converted to {wanted}; declare lode.coerce to allow it")
    trimmed = f"trim({value})"
    if wanted.integral:
        return _shaped(value, f"try_cast({trimmed} AS {wanted})", _WHOLE_TEXT)
    if wanted.name == "decimal":
        shape = _REAL_TEXT if reading.rounding else _decimal_text(wanted.scale or 0)
        return _shaped(value, f"try_cast({trimmed} AS {wanted})", shape)
    if wanted.name in ("float", "double"):
        shape = f"{_REAL_TEXT}|{_NON_FINITE_TEXT}" if reading.non_finite else _REAL_TEXT
        return _shaped(value, f"try_cast({trimmed} AS {wanted})", shape)
    if wanted.name == "boolean":
        return tried(value, f"CASE lower({trimmed}) WHEN 'true' THEN true WHEN 'false' THEN false END")
    if wanted.name == "binary":
        return Conversion(f"cast({value} AS binary)")
    return refused(value, wanted, f"text is not converted to {wanted}")


def _shaped(value: str, attempt: str, pattern: str) -> Conversion:
    """Spark's casts from text are generous (`1d`, `inf`): the text must look like the number it is."""
    return tried(value, attempt).also(f"coalesce(NOT (trim({value}) RLIKE {quoting.text(pattern)}), false)")


def _decimal_text(scale: int) -> str:
    """Digits with at most `scale` places; more are allowed only when they are zeros."""
    return f"^[+-]?([0-9]+([.][0-9]{{0,{scale}}}0*)?|[.][0-9]{{1,{max(scale, 1)}}}0*)$"


def _moment(value: str, incoming: Type, wanted: Type, reading: Reading) -> Conversion:
    if incoming == wanted:
        return Conversion(value)
    if reading.epoch and (incoming.numeric or (incoming.name == "string" and reading.coerce)):
        whole = convert(value, incoming, Type("bigint"), reading)
        if wanted.name != "timestamp" and reading.zone is None:
            return refused(value, wanted, f"an epoch is an instant and the field a {wanted}; declare lode.zone")
        attempt = moments.from_epoch(whole.value, wanted, reading)
        return tried(value, attempt).also(whole.failed, *moments.day_only(whole.value, wanted, reading))
    if incoming.name == "string":
        attempt, failed = moments.from_text(value, wanted, reading)
        return tried(value, attempt).also(failed)
    found = moments.between(value, incoming, wanted, reading.zone)
    if found is None:
        return refused(value, wanted, moments.why(incoming, wanted))
    return Conversion(found[0], found[1])
