"""The jars we run on, each pinned by coordinate, SHA-256 and size in `jars.lock`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

Group = Literal["spark", "s3", "broker", "registry", "cdc", "postgres"]


@dataclass(frozen=True, slots=True)
class Jar:
    """One line of the lock."""

    coordinate: str  # group:artifact:version, or group:artifact:version:classifier@extension
    sha256: str
    size: int

    @property
    def file_name(self) -> str:
        """Named by content too: another version, or another build of one, never replaces a file in use."""
        stem, extension = _named(self.coordinate)
        return f"{stem}.{self.sha256[:12]}.{extension}"


@cache
def locked_jars(group: Group) -> tuple[Jar, ...]:
    """The jars of a group, in class path order."""
    text = resources.files(__package__).joinpath("jars.lock").read_text(encoding="utf-8")
    entries = tomllib.loads(text)["jar"]
    return tuple(
        Jar(entry["coordinate"], entry["sha256"], entry["size"]) for entry in entries if entry["group"] == group
    )


def maven_path(coordinate: str) -> str:
    """Where a Maven repository keeps the file of a coordinate."""
    group, artifact, version = coordinate.split(":")[:3]
    stem, extension = _named(coordinate)
    return f"{group.replace('.', '/')}/{artifact}/{version}/{stem}.{extension}"


def _named(coordinate: str) -> tuple[str, str]:
    _, artifact, version, *rest = coordinate.split(":")
    classifier, _, extension = rest[0].partition("@") if rest else ("", "", "jar")
    return "-".join(part for part in (artifact, version, classifier) if part), extension
