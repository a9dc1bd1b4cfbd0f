"""The daemon of the Python workers imports pyspark from where it is installed, not from Spark's archive."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import lodestream

SOURCE = Path(lodestream.__file__).parent.parent
LOOK = """
import sys, zipimport
from lodestream.sources.codecs.worker_daemon import drop_archives
drop_archives()
import pyspark
print(pyspark.__file__)
print(sum(isinstance(found, zipimport.zipimporter) for found in sys.path_importer_cache.values()))
"""


def look(path: list[Path], hidden: str = "") -> list[str]:
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    done = subprocess.run([sys.executable, "-c", hidden + LOOK], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def archive(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "pyspark.zip", "w") as packed:
        packed.writestr("pyspark/__init__.py", "")
    return folder / "pyspark.zip"


def test_the_installed_modules_are_used_and_no_archive_is_left_to_read_again(tmp_path: Path) -> None:
    installed = find_spec("pyspark")
    assert installed is not None
    assert look([archive(tmp_path), SOURCE]) == [installed.origin, "0"]


def test_an_archive_that_alone_has_pyspark_stays(tmp_path: Path) -> None:
    packed = archive(tmp_path)
    hidden = (
        "from importlib.machinery import PathFinder\n"
        "found = PathFinder.find_spec\n"
        "PathFinder.find_spec = lambda name, path=None, target=None: "
        "None if name == 'pyspark' and path is not None else found(name, path, target)\n"
    )
    first, count = look([packed, SOURCE], hidden)
    assert first.startswith(str(packed))
    assert int(count) >= 1
