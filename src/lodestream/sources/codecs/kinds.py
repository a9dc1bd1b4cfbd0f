"""The kinds of codecs. A kind registers itself: how it is made, and what to do before its first batch.

Nobody else names a kind: whoever has a declaration asks here what goes with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from lodestream.errors import DeclarationError
from lodestream.pipeline.decoders import DecoderDeclaration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lodestream.sources.codecs.choose import Decoding
    from lodestream.sources.codecs.codec import Codec

D = TypeVar("D", bound=DecoderDeclaration)


@dataclass(frozen=True, slots=True)
class CodecKind:
    """`make` gives the codec of a declaration. `warm_up` is called beside the start of a run; it may take seconds."""

    declaration: type[DecoderDeclaration]
    make: Callable[[Any, Decoding], Codec]
    warm_up: Callable[[SparkSession], None] | None = None


_kinds: dict[type[DecoderDeclaration], CodecKind] = {}


def register_codec(
    declaration: type[D],
    make: Callable[[D, Decoding], Codec],
    *,
    warm_up: Callable[[SparkSession], None] | None = None,
) -> None:
    """Say how messages that are declared so are decoded."""
    _kinds[declaration] = CodecKind(declaration, make, warm_up)


def codec_kind_of(declared: DecoderDeclaration) -> CodecKind:
    """What was registered for a declaration, or for a class that it extends."""
    for one in type(declared).__mro__:
        if one in _kinds:
            return _kinds[one]
    name = type(declared).__name__
    raise DeclarationError(
        f"{name} cannot be decoded",
        why="no codec is registered for it",
        fix=f"register_codec({name}, ...), beside the class",
    )


def formats() -> tuple[str, ...]:
    """What reasons of codecs begin with."""
    return tuple(dict.fromkeys(one.format for one in _kinds if one.format))
