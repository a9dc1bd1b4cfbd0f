"""Everything wrong with a configuration, reported together."""

from __future__ import annotations

from collections.abc import Iterable

from lodestream.config.schema import nearest
from lodestream.errors import ConfigError


class Problems:
    """Collects errors while the configuration is read, so that one run shows them all."""

    def __init__(self) -> None:
        self._found: list[ConfigError] = []

    def add(self, place: str, what: str, *, why: str | None = None, fix: str | None = None) -> None:
        self._found.append(ConfigError(f"{place}: {what}", why=why, fix=fix))

    def unknown(self, place: str, label: str, name: str, valid: Iterable[str]) -> None:
        """A name that nothing listens to: most often a typing error."""
        names = sorted(valid)
        close = nearest(name, names)
        fix = f"did you mean {close}?" if close else f"remove it, or use one of: {', '.join(names)}"
        self.add(place, f'unknown {label} "{name}"', why=f"valid: {_shortened(names)}", fix=fix)

    def raise_any(self) -> None:
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            listed = "\n".join("  " + str(problem).replace("\n", "\n  ") for problem in self._found)
            raise ConfigError(
                f"{len(self._found)} problems in the configuration\n{listed}", problems=tuple(self._found)
            )


def _shortened(names: list[str], most: int = 12) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
