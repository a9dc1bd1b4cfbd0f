"""The Maven repository that jars come from: configured, a mirror in Maven's settings, else Spark's own default."""

from __future__ import annotations

import base64
import re
import ssl
import urllib.request
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit, urlunsplit
from xml.etree import ElementTree

from lodestream.config import RuntimeConfig
from lodestream.errors import RuntimeMissing

_TIMEOUT = 30
_SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)


@dataclass(frozen=True, slots=True)
class Repository:
    """A Maven repository: a URL, or a folder in Maven's layout."""

    address: str
    origin: str

    def __str__(self) -> str:
        return f"{_without_login(self.address)} ({self.origin})"

    @property
    def folder(self) -> Path | None:
        parts = urlsplit(self.address)
        if parts.scheme in ("http", "https"):
            return None
        return Path(unquote(parts.path) if parts.scheme == "file" else self.address).expanduser()

    def open(self, path: str) -> IO[bytes]:
        """A stream of the file at `path`; raises OSError (URLError is one) when it cannot be had."""
        if self.folder is not None:
            return (self.folder / path).open("rb")
        request = urllib.request.Request(  # noqa: S310 - `folder` has taken every other scheme
            f"{_without_login(self.address).rstrip('/')}/{path}", headers={"User-Agent": "lodestream"}
        )
        if login := _login(self.address):
            request.add_header("Authorization", f"Basic {login}")
        stream: IO[bytes] = urllib.request.urlopen(request, timeout=_TIMEOUT, context=_certificates())  # noqa: S310
        return stream


def find_repository(runtime: RuntimeConfig, settings: Path | None = None) -> Repository:
    """Configuration, then the mirror of central in Maven's settings, then the address Spark resolves from."""
    if runtime.maven:
        return Repository(runtime.maven, "set by runtime.maven or LODE_RUNTIME_MAVEN")
    settings = settings or Path.home() / ".m2" / "settings.xml"
    if mirror := _mirror_of_central(settings):
        return Repository(mirror, f"mirror in {settings}")
    return Repository(_ivy_default(), "the default of spark.jars.packages")


def _mirror_of_central(settings: Path) -> str | None:
    try:
        tree = ElementTree.parse(settings)  # noqa: S314 - the user's own file, which Maven trusts too
    except FileNotFoundError:
        return None
    except (OSError, ElementTree.ParseError) as error:
        raise RuntimeMissing(
            f"cannot read Maven's settings {settings}",
            why=str(error),
            fix="repair the file, or set LODE_RUNTIME_MAVEN to a repository",
        ) from error
    for mirror in tree.iterfind(".//{*}mirrors/{*}mirror"):
        if _covers_central(mirror.findtext("{*}mirrorOf", "")) and (url := mirror.findtext("{*}url")):
            return url.strip()
    return None


def _covers_central(mirror_of: str) -> bool:
    names = {name.strip() for name in mirror_of.split(",")}
    return "!central" not in names and bool(names & {"central", "*", "external:*"})


def _ivy_default() -> str:
    # Spark resolves spark.jars.packages with the Apache Ivy that PySpark ships. Reading its default address
    # keeps ours the same as Spark's.
    spec = find_spec("pyspark")
    jars = Path(spec.origin).parent / "jars" if spec and spec.origin else Path()
    for ivy in sorted(jars.glob("ivy-*.jar")):
        with zipfile.ZipFile(ivy) as archive:
            constants = archive.read("org/apache/ivy/plugins/resolver/IBiblioResolver.class")
        if found := re.search(rb"https://[a-z0-9.\-]+/maven2/", constants):
            return found.group().decode()
    raise RuntimeMissing(
        "no address of a Maven repository",
        why=f"there is no Apache Ivy in {jars} to read the default from",
        fix="reinstall pyspark, or set LODE_RUNTIME_MAVEN to a repository or a folder in Maven's layout",
    )


def _certificates() -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not context.get_ca_certs() and not _finds_some(ssl.get_default_verify_paths()):
        # A Python built elsewhere may look for certificates where this system does not keep them.
        for bundle in filter(lambda name: Path(name).is_file(), _SYSTEM_BUNDLES):
            context.load_verify_locations(bundle)
    return context


def _finds_some(paths: ssl.DefaultVerifyPaths) -> bool:
    return paths.cafile is not None or paths.capath is not None


def _login(address: str) -> str | None:
    parts = urlsplit(address)
    if parts.username is None:
        return None
    return base64.b64encode(f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()).decode()


def _without_login(address: str) -> str:
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
