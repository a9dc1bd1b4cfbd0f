"""The per-user folder for what is fetched or made once: jars and the Java wrapper."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lodestream.config import RuntimeConfig
from lodestream.errors import RuntimeMissing

_WHY = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "this user may not read or write there",
    errno.EPERM: "this user may not read or write there",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
}


def cache_dir(runtime: RuntimeConfig, environ: Mapping[str, str] = os.environ) -> Path:
    """Configured, else `$XDG_CACHE_HOME/lodestream`, else `~/.cache/lodestream`."""
    if runtime.cache:
        return Path(runtime.cache).expanduser().absolute()
    xdg = environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says that a relative value is to be ignored.
    base = Path(xdg) if Path(xdg).is_absolute() else Path.home() / ".cache"
    return base / "lodestream"


@contextmanager
def usable(folder: Path) -> Iterator[None]:
    """Turn a full disk or a read-only folder into an error that says what to do."""
    try:
        yield
    except OSError as error:
        why = _WHY.get(error.errno or 0)
        if why is None:
            raise
        fix = "free some space, or " if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        raise RuntimeMissing(
            f"cannot use the cache {folder}",
            why=f"{why} ({error.filename or folder})",
            fix=f"{fix}set LODE_RUNTIME_CACHE to a folder that can be written to",
        ) from error


def write_atomically(target: Path, content: str, mode: int = 0o644) -> None:
    """Readers see the old file or the new one, never a half."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        part.write_text(content, encoding="utf-8")
        part.chmod(mode)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
