"""The jars we run on, each pinned by coordinate, SHA-256 and size in `jars.lock`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

Group = Literal["spark", "s3", "broker"]


@dataclass(frozen=True, slots=True)
class Jar:
    """One line of the lock."""

    coordinate: str  # group:artifact:version
    sha256: str
    size: int

    @property
    def file_name(self) -> str:
        """Named by content too: another version, or another build of one, never replaces a file in use."""
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.{self.sha256[:12]}.jar"


@cache
def locked_jars(group: Group) -> tuple[Jar, ...]:
    """The jars of a group, in class path order."""
    text = resources.files(__package__).joinpath("jars.lock").read_text(encoding="utf-8")
    entries = tomllib.loads(text)["jar"]
    return tuple(
        Jar(entry["coordinate"], entry["sha256"], entry["size"]) for entry in entries if entry["group"] == group
    )


def maven_path(coordinate: str) -> str:
    """Where a Maven repository keeps the jar of a coordinate."""
    group, artifact, version = coordinate.split(":")
    return f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.jar"
