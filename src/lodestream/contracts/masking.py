"""Sensitive values as SQL that hides them.

The secret stays out of contracts and SQL text: the expressions name two parameters, and `masking_parameters`
makes their values from the secret at run time, for `spark.sql(text, args=...)`. A flow takes it from the environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256

from lodestream.contracts import quoting
from lodestream.contracts.model import Contract, Field, Masking
from lodestream.contracts.types import parse_type
from lodestream.contracts.violations import hidden
from lodestream.errors import ConfigError, ContractError

VARIABLE = "LODE_MASKING_KEY"
INNER, OUTER = "lode_mask_inner", "lode_mask_outer"
_BLOCK = 64
_REDACTED = "[redacted]"
_LETTER = r"[\p{L}\p{N}]"
_OTHER = r"[^\p{L}\p{N}]"


def masking_parameters(secret: str) -> dict[str, str]:
    """The values of the two named parameters: the key as HMAC uses it, in hex. As secret as the key itself."""
    key = check_secret(secret).encode()
    block = (sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
    return {name: bytes(byte ^ pad for byte in block).hex() for name, pad in ((INNER, 0x36), (OUTER, 0x5C))}


@dataclass(frozen=True, slots=True)
class MaskingKey:
    """SQL for the two halves of the key: the named parameters, unless the caller cannot pass any."""

    inner: str = f":{INNER}"
    outer: str = f":{OUTER}"

    @classmethod
    def inline(cls, secret: str) -> MaskingKey:
        """The key as literals, for DataFrame expressions. Plans then hold the key: keep them out of logs."""
        values = masking_parameters(secret)
        return cls(quoting.text(values[INNER]), quoting.text(values[OUTER]))

    @classmethod
    def of_environment(cls, contract: Contract, environ: Mapping[str, str] = os.environ) -> MaskingKey:
        """The key that the contract needs; one that hashes nothing needs none."""
        hashed = [path for path, field in _masked_fields(contract) if field.masking and field.masking.method == "hash"]
        if not hashed:
            return NAMED
        if not environ.get(VARIABLE):
            raise ConfigError(
                f"contract {contract.title} hashes {', '.join(hashed)}, and there is no key",
                why=f"the environment variable {VARIABLE} is not set",
                fix=f"set {VARIABLE} to at least 16 random bytes, for example from `openssl rand -hex 32`, and keep it:"
                " under another key the same value has another hash",
            )
        return cls.inline(environ[VARIABLE])


NAMED = MaskingKey()


def masked(contract: Contract, key: MaskingKey = NAMED) -> Mapping[str, str]:
    """Column name to SQL for its masked value, for the columns that the contract masks."""
    return {field.name: mask(field, quoting.name(field.name), key) for field in contract.fields if hidden(field)}


def sensitive(contract: Contract) -> tuple[str, ...]:
    """Paths of the fields that carry a classification or a masking: what must not be shown in logs or messages."""
    return tuple(path for field in contract.fields for path in _sensitive(field, field.name))


def mask(field: Field, value: str, key: MaskingKey = NAMED, depth: int = 0) -> str:
    """SQL for the masked value of one field, nested values included."""
    if field.masking is not None:
        return _masked(field.masking, field, value, key)
    if field.fields and hidden(field):
        return _struct(field, value, key, depth)
    if field.items and hidden(field.items):
        item = f"item_{depth}"
        return f"transform({value}, {item} -> {mask(field.items, item, key, depth + 1)})"
    return value


def _struct(field: Field, value: str, key: MaskingKey, depth: int) -> str:
    members = [(inner, f"{value}.{quoting.name(inner.name)}") for inner in field.fields]
    parts = ", ".join(f"{quoting.text(inner.name)}, {mask(inner, path, key, depth)}" for inner, path in members)
    return f"CASE WHEN {value} IS NOT NULL THEN named_struct({parts}) END"


def _masked(masking: Masking, field: Field, value: str, key: MaskingKey) -> str:
    kind = parse_type(field.type)
    match masking.method:
        case "redact" if kind.name == "string":
            return f"CASE WHEN {value} IS NOT NULL THEN {quoting.text(_REDACTED)} END"
        case "redact":
            return f"cast(NULL AS {kind})"
        case "hash":
            return hmac(value, key)
        case "last":
            return _last(value, masking.keep)


def hmac(value: str, key: MaskingKey = NAMED) -> str:
    """HMAC-SHA256 in hex. A plain hash of a phone number is guessed in seconds; a keyed one needs the key."""
    inside = f"unhex(sha2(concat(unhex({key.inner}), cast({value} AS binary)), 256))"
    return f"sha2(concat(unhex({key.outer}), {inside}), 256)"


def _last(value: str, keep: int) -> str:
    """Letters and digits but the last few become stars; a value no longer than what is kept is hidden whole."""
    # Only letters and digits are counted, so that separators do not shift what is shown.
    followed = f"{_LETTER}(?=(?:{_OTHER}*{_LETTER}){{{keep}}})"
    count = f"length(regexp_replace({value}, {quoting.text(_OTHER)}, ''))"
    partly = f"regexp_replace({value}, {quoting.text(followed)}, '*')"
    whole = f"regexp_replace({value}, {quoting.text(_LETTER)}, '*')"
    return f"CASE WHEN {count} > {keep} THEN {partly} ELSE {whole} END"


def _masked_fields(contract: Contract) -> Iterator[tuple[str, Field]]:
    waiting = [(field.name, field) for field in contract.fields]
    while waiting:
        path, field = waiting.pop(0)
        yield path, field
        waiting += [(f"{path}.{inner.name}", inner) for inner in field.fields]
        waiting += [(f"{path}[]", field.items)] if field.items else []


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
