"""Where files are: a local folder, or a bucket with its endpoint, reached through Arrow on driver and executors."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from lodestream.config.secret import fill_references
from lodestream.errors import ConfigError, LodeError, StorageUnavailable

if TYPE_CHECKING:
    from lodestream.sources.files.listing import FileVersion

S3_OPTIONS = ("endpoint", "region", "access_key", "secret_key", "session_token", "scheme", "anonymous")
_REFUSED = re.compile(
    r"ACCESS_DENIED|AccessDenied|INVALID_ACCESS_KEY|InvalidAccessKey|SIGNATURE|NO_SUCH_BUCKET|NoSuchBucket"
    r"|Permission denied|credentials",
    re.IGNORECASE,
)
_CONNECT_SECONDS, _ANSWER_SECONDS = 5, 30


@dataclass(frozen=True)
class FileStore:
    """A root folder and how to open it; plain data, so that it travels to executors.

    `root` is what positions and rows name: `/data/in` or `s3://bucket/in`, without a trailing slash.
    """

    root: str
    s3: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def local(self) -> bool:
        return "://" not in self.root

    def open(self) -> tuple[Any, str]:
        """Arrow's filesystem, and the root as that filesystem spells it."""
        # Only where files are opened: `lode status` looks at local folders without Arrow, whose import takes long.
        import pyarrow.fs as arrow_fs

        if self.local:
            return arrow_fs.LocalFileSystem(), self.root
        if self.root.startswith("s3://"):
            return arrow_fs.S3FileSystem(**_s3_arguments(self.s3)), self.root.removeprefix("s3://")
        filesystem, path = arrow_fs.FileSystem.from_uri(self.root)
        return filesystem, path.rstrip("/")

    def same(self, now: FileVersion, listed: FileVersion) -> bool:
        """Whether a file is as it was listed. Asked for one object, a bucket tells whole seconds only."""
        if self.local:
            return now == listed
        return now.size == listed.size and now.modified // 1_000_000 == listed.modified // 1_000_000

    @contextmanager
    def errors(self, doing: str) -> Iterator[None]:
        """Raise ours for Arrow's: what may pass by itself, and what a person must set right."""
        try:
            yield
        except LodeError:
            raise
        except OSError as error:
            if isinstance(error, PermissionError) or _REFUSED.search(str(error)):
                raise ConfigError(
                    f"{doing}: {self.root} refused us",
                    why=_first(error),
                    fix="check the access rules, and for a bucket the options endpoint, region, access_key, secret_key",
                ) from error
            raise StorageUnavailable(f"{doing}: {self.root} did not answer", why=_first(error)) from error


def file_store(path: str, options: Mapping[str, str], environ: Mapping[str, str] | None = None) -> FileStore:
    """The store of a declared path; `${env:NAME}` in an option is filled here, so no secret is written down."""
    environ = os.environ if environ is None else environ
    filled = {key: _filled(key, value, environ) for key, value in options.items() if key in S3_OPTIONS}
    parts = urlsplit(path)
    if parts.scheme in ("", "file"):
        if filled:
            raise ConfigError(f"{path} is a local folder: the options {', '.join(sorted(filled))} are for buckets")
        local = unquote(parts.path) if parts.scheme else path
        return FileStore(str(Path(local).expanduser().absolute()))
    scheme = "s3" if parts.scheme in ("s3", "s3a", "s3n") else parts.scheme
    return FileStore(f"{scheme}://{parts.netloc}{parts.path}".rstrip("/"), filled)


def _filled(key: str, value: str, environ: Mapping[str, str]) -> str:
    try:
        return fill_references(value, environ)
    except KeyError as missing:
        raise ConfigError(f"option {key}: the variable {missing.args[0]} is not set", fix="export it") from missing


def _s3_arguments(options: Mapping[str, str]) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "access_key": options.get("access_key"),
        "secret_key": options.get("secret_key"),
        "session_token": options.get("session_token"),
        "region": options.get("region"),
        "anonymous": options.get("anonymous", "false").lower() == "true",
        "connect_timeout": _CONNECT_SECONDS,
        "request_timeout": _ANSWER_SECONDS,
    }
    endpoint = options.get("endpoint")
    if endpoint:
        scheme, _, host = endpoint.rpartition("://")
        arguments |= {"endpoint_override": host.rstrip("/"), "scheme": options.get("scheme") or scheme or "https"}
        # Only AWS itself can be asked in which region a bucket is.
        arguments["region"] = arguments["region"] or "us-east-1"
    return {key: value for key, value in arguments.items() if value is not None}


def _first(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
