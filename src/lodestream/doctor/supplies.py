"""The jars: there and genuine, or still to be fetched."""

from __future__ import annotations

from lodestream.config import Config
from lodestream.doctor.check import Check
from lodestream.runtime.cache import cache_dir
from lodestream.runtime.catalogs import needs_s3
from lodestream.runtime.jars import ensure_jars, unverified
from lodestream.runtime.lock import Group, Jar, locked_jars
from lodestream.runtime.progress import Progress


def jars(config: Config) -> Check:
    wanted = _wanted(config)
    folder = cache_dir(config.runtime) / "jars"
    missing = unverified(wanted, folder)
    if missing:
        size = sum(jar.size for jar in missing) // 1_000_000 + 1
        found = f"{len(missing)} of {len(wanted)} are not in {folder} ({size} MB)"
        return Check("jars", "warning", found, "the first run fetches them; `lode doctor --fetch` does it now")
    return Check("jars", "ok", f"all {len(wanted)} are in {folder}, verified by SHA-256")


def fetch_jars(config: Config, progress: Progress) -> Check:
    for group in groups(config):
        ensure_jars(group, config.runtime, progress)
    return jars(config)


def groups(config: Config) -> list[Group]:
    found: list[Group] = ["spark"]
    if config.kafka.bootstrap == "embedded":
        found.append("broker")
    if needs_s3(config):
        found.append("s3")
    return found


def _wanted(config: Config) -> list[Jar]:
    return list({jar.file_name: jar for group in groups(config) for jar in locked_jars(group)}.values())
