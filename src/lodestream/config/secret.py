"""Secrets: read from the environment, shown as stars."""

from __future__ import annotations

import re
from collections.abc import Mapping

STARS = "****"
REFERENCE = re.compile(r"\$\{env:([^}]*)\}")

_SOUNDS_SECRET = re.compile(
    r"passw|secret|token|jaas|credential|authorization|api[._-]?key|access[._-]?key|private[._-]?key"
    r"|keystore\.key$|key\.pem$",
    re.IGNORECASE,
)
# Settings *about* a secret, such as sasl.oauthbearer.token.endpoint.url, hold nothing to hide.
_ABOUT_A_SECRET = re.compile(
    r"(ur[il]|location|path|file|enabled|type|class|name|endpoint|audience|ms|seconds|provider|algorithm)$",
    re.IGNORECASE,
)
_PASSWORD_IN_URI = re.compile(r"://[^/@\s:]+:[^/@\s]+@|[?&;]password=[^&;]+", re.IGNORECASE)


class Secret:
    """A value that never prints itself; `reveal()` gives the text to the one call that needs it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return STARS

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))


def reveal(value: str | Secret) -> str:
    """The text of a setting, secret or not."""
    return value.reveal() if isinstance(value, Secret) else value


def sounds_secret(name: str) -> bool:
    """Whether a setting of this name must come from the environment."""
    return bool(_SOUNDS_SECRET.search(name)) and not _ABOUT_A_SECRET.search(name)


def holds_password(uri: str) -> bool:
    """Whether an address carries a password in plain sight (a reference is not one)."""
    return bool(_PASSWORD_IN_URI.search(REFERENCE.sub("", uri)))


def references(text: str) -> tuple[str, ...]:
    """The variables that a text refers to as ${env:NAME}."""
    return tuple(REFERENCE.findall(text))


def fill_references(text: str, environ: Mapping[str, str]) -> str:
    """The text with each ${env:NAME} replaced; KeyError(NAME) when a variable is not set."""
    return REFERENCE.sub(lambda match: environ[match[1]], text)
