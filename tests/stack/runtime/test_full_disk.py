"""A full and a read-only disk, for real: a small file system, mounted in a namespace of the test's own."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

UNSHARE = ["unshare", "--user", "--map-root-user", "--mount"]
BEGIN = """
import hashlib, sys
from pathlib import Path
from lodestream.config import RuntimeConfig
from lodestream.runtime.jars import ensure
from lodestream.runtime.lock import Jar
from lodestream.runtime.progress import SilentProgress
from lodestream.runtime import download
content = b"x" * 4_000_000
jar = Jar("org.example:part:1", hashlib.sha256(content).hexdigest(), len(content))
disk, repository = Path(sys.argv[1]), Path(sys.argv[2])
file = repository / "org/example/part/1/part-1.jar"
file.parent.mkdir(parents=True)
file.write_bytes(content)
"""
END = """
try:
    ensure([jar], disk / "jars", RuntimeConfig(maven=str(repository)), SilentProgress())
except Exception as error:
    print(type(error).__name__, error)
print([path.name for path in disk.rglob("*") if path.name.startswith("part-")])
"""
# The space is taken by somebody else while we download: the look beforehand cannot see it.
FILL = """
real = download.Repository.open
def fill(self, path):
    with (disk / "filler").open("wb") as filler:
        try:
            while True:
                filler.write(b"x" * 65536)
                filler.flush()
        except OSError:
            pass
    return real(self, path)
download.Repository.open = fill
"""


def _can_mount() -> bool:
    try:
        return subprocess.run([*UNSHARE, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


pytestmark = pytest.mark.skipif(not _can_mount(), reason="this machine allows no mount namespaces")


def _on_disk(options: str, tmp_path: Path, middle: str = "") -> str:
    disk = tmp_path / "disk"
    disk.mkdir()
    python = shlex.join([sys.executable, "-c", BEGIN + middle + END, str(disk), str(tmp_path / "repository")])
    script = f"mount -t tmpfs -o {options} none {shlex.quote(str(disk))} && exec {python}"
    return subprocess.run([*UNSHARE, "sh", "-c", script], capture_output=True, text=True, check=True).stdout


def test_too_little_space_is_noticed_before_the_download(tmp_path: Path):
    said = _on_disk("size=8m", tmp_path)
    assert said.startswith("RuntimeMissing not enough disk space")
    assert "4 MB" in said or "5 MB to fetch" in said
    assert said.endswith("[]\n")


def test_a_disk_that_fills_up_during_the_download_leaves_nothing(tmp_path: Path):
    said = _on_disk("size=64m", tmp_path, FILL)
    assert said.startswith("RuntimeMissing cannot use the cache")
    assert "the disk is full" in said
    assert said.endswith("[]\n")


def test_a_read_only_cache_is_explained(tmp_path: Path):
    said = _on_disk("ro", tmp_path)
    assert said.startswith("RuntimeMissing cannot use the cache")
    assert "read-only" in said
    assert "LODE_RUNTIME_CACHE" in said
