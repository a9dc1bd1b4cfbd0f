"""Write the project from the files beside this module: all of it, or nothing."""

from __future__ import annotations

import re
import shutil
import tempfile
import unicodedata
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from lodestream.errors import ConfigError, RuntimeMissing

_PLACEHOLDER = "starter_name"


def write_project(folder: Path) -> list[Path]:
    """Make `folder` a project named after it; returns its files. Refuses a folder that holds anything."""
    _refuse_occupied(folder)
    name = pipeline_name(folder.absolute().name)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".lode-init-", dir=folder.parent) as scratch:
            made = Path(scratch) / "project"
            _copy(resources.files(__package__) / "project", made, name)
            _move(made, folder)
    except OSError as error:
        raise RuntimeMissing(
            f"cannot write the project {folder}",
            why=f"{error.strerror} ({error.filename})",
            fix="choose a folder that this user may write to, with space on its disk",
        ) from error
    return sorted(path for path in folder.rglob("*") if path.is_file())


def pipeline_name(text: str) -> str:
    """A folder's name as the name of a pipeline: lowercase letters, digits and underscores."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "_", plain).strip("_")[:60].strip("_")
    if not name:
        return "project"
    return name if name[0].isalpha() else f"p_{name}"


def _refuse_occupied(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() or folder.is_symlink():
        kind = "is not empty" if folder.is_dir() else "is a file"
        raise ConfigError(f"{folder} {kind}", why="lode init never overwrites", fix="choose another name")


def _copy(source: Traversable, target: Path, name: str) -> None:
    if source.is_dir():
        if source.name == "__pycache__":
            return
        target.mkdir()
        for one in source.iterdir():
            _copy(one, target / one.name, name)
    else:
        text = source.read_text(encoding="utf-8")
        target.write_text(text.replace(_PLACEHOLDER, name), encoding="utf-8")


def _move(made: Path, folder: Path) -> None:
    """Into place at once, so that a failure on the way leaves nothing half-made."""
    if folder.is_dir():
        for one in made.iterdir():
            shutil.move(one, folder / one.name)
    else:
        made.rename(folder)
