"""Sensitive values as SQL that hides them. The secret is named here and given at run time, never written down."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from lodestream.contracts import quoting
from lodestream.contracts.model import Contract, Field, Masking
from lodestream.contracts.types import parse_type
from lodestream.errors import ContractError

SECRET = "lode_masking_key"  # noqa: S105 - the name of the parameter, not a secret
_BLOCK = 64
_REDACTED = "[redacted]"


def masked(contract: Contract, secret: str = f":{SECRET}") -> Mapping[str, str]:
    """Column name to SQL for its masked value, for the columns that the contract masks.

    `secret` is SQL for the key: by default the named parameter `:lode_masking_key` of `spark.sql(text, args=...)`.
    """
    return {field.name: mask(field, quoting.name(field.name), secret) for field in contract.fields if masks(field)}


def masks(field: Field) -> bool:
    return field.masking is not None or any(masks(inner) for inner in _inner(field))


def sensitive(contract: Contract) -> tuple[str, ...]:
    """Paths of the fields that carry a classification or a masking: what must not be shown in logs or messages."""
    return tuple(path for field in contract.fields for path in _sensitive(field, field.name))


def mask(field: Field, value: str, secret: str = f":{SECRET}", depth: int = 0) -> str:
    """SQL for the masked value of one field, nested values included."""
    if field.masking is not None:
        return _masked(field.masking, field, value, secret)
    if field.fields:
        parts = ", ".join(
            f"{quoting.text(inner.name)}, {mask(inner, f'{value}.{quoting.name(inner.name)}', secret, depth)}"
            for inner in field.fields
        )
        return f"CASE WHEN {value} IS NOT NULL THEN named_struct({parts}) END" if masks(field) else value
    if field.items and masks(field.items):
        item = f"item_{depth}"
        return f"transform({value}, {item} -> {mask(field.items, item, secret, depth + 1)})"
    return value


def _masked(masking: Masking, field: Field, value: str, secret: str) -> str:
    kind = parse_type(field.type)
    match masking.method:
        case "redact" if kind.name == "string":
            return f"CASE WHEN {value} IS NOT NULL THEN {quoting.text(_REDACTED)} END"
        case "redact":
            return f"cast(NULL AS {kind})"
        case "hash":
            return hmac(f"cast({value} AS string)", secret)
        case "last":
            return _last(value, masking.keep)


def _last(value: str, keep: int) -> str:
    """All letters and digits but the last few become stars; a value as short as what is kept is hidden whole."""
    # Stars replace every character that is followed by enough others, so separators do not shift what is kept.
    letters = "[\\p{L}\\p{N}]"
    shown = f"(?=(?:.*?{letters}){{{keep}}})"
    count = f"length(regexp_replace({value}, {quoting.text('[^\\p{L}\\p{N}]')}, ''))"
    partly = f"regexp_replace({value}, {quoting.text(f'(?s){letters}{shown}')}, '*')"
    whole = f"regexp_replace({value}, {quoting.text(letters)}, '*')"
    return f"CASE WHEN {count} > {keep} THEN {partly} ELSE {whole} END"


def hmac(value: str, secret: str) -> str:
    """HMAC-SHA256 in hex. A plain hash of a phone number is guessed in seconds; a keyed one needs the key."""
    key = (
        f"CASE WHEN octet_length({secret}) > {_BLOCK} THEN unhex(sha2({secret}, 256)) ELSE cast({secret} AS binary) END"
    )
    inner, outer = (_padded(key, byte) for byte in ("36", "5c"))
    return f"sha2(concat({outer}, unhex(sha2(concat({inner}, cast({value} AS binary)), 256))), 256)"


def _padded(key: str, byte: str) -> str:
    """The key, filled with zeros to one block, each byte xored with the pad byte."""
    block = f"rpad(hex({key}), {_BLOCK * 2}, '0')"
    bytes_ = f"transform(sequence(1, {_BLOCK}), i -> substr({block}, 2 * i - 1, 2))"
    xored = f"transform({bytes_}, b -> lpad(hex(cast(conv(b, 16, 10) AS int) ^ {int(byte, 16)}), 2, '0'))"
    return f"unhex(array_join({xored}, ''))"


def _inner(field: Field) -> Iterator[Field]:
    yield from field.fields
    if field.items:
        yield field.items


def _sensitive(field: Field, path: str) -> Iterator[str]:
    if field.masking is not None or field.classification is not None:
        yield path
    for inner in field.fields:
        yield from _sensitive(inner, f"{path}.{inner.name}")
    if field.items:
        yield from _sensitive(field.items, f"{path}[]")


def check_secret(secret: str) -> str:
    """The key itself, refused when it is too short to protect anything."""
    if len(secret.encode()) < 16 or re.fullmatch(r"(.)\1*", secret):
        raise ContractError(
            "the masking key is too weak",
            why="hashed values of people are guessed when the key is short",
            fix="set it to at least 16 random bytes, for example from `openssl rand -hex 32`",
        )
    return secret
