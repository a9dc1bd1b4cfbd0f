from __future__ import annotations

import base64
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest

from lodestream.config import RuntimeConfig
from lodestream.errors import RuntimeMissing
from lodestream.runtime.repository import Repository, find_repository

MIRRORS = """<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0"><mirrors>
<mirror><id>a</id><mirrorOf>{}</mirrorOf><url>https://mirror.example/m2</url></mirror>
</mirrors></settings>"""


def test_the_configured_address_comes_first(tmp_path: Path):
    settings = tmp_path / "settings.xml"
    settings.write_text(MIRRORS.format("*"))
    found = find_repository(RuntimeConfig(maven="https://ours.example/"), settings)
    assert found.address == "https://ours.example/"


@pytest.mark.parametrize(
    ("mirror_of", "used"),
    [
        ("central", True),
        ("*", True),
        ("external:*", True),
        ("other,central", True),
        ("*,!central", False),
        ("other", False),
    ],
)
def test_mavens_settings_name_the_mirror(tmp_path: Path, mirror_of: str, used: bool):
    settings = tmp_path / "settings.xml"
    settings.write_text(MIRRORS.format(mirror_of))
    found = find_repository(RuntimeConfig(), settings)
    assert (found.address == "https://mirror.example/m2") is used


def test_settings_without_a_namespace_are_read_too(tmp_path: Path):
    settings = tmp_path / "settings.xml"
    settings.write_text(MIRRORS.format("central").replace(' xmlns="http://maven.apache.org/SETTINGS/1.0.0"', ""))
    assert find_repository(RuntimeConfig(), settings).address == "https://mirror.example/m2"


def test_broken_settings_are_named(tmp_path: Path):
    settings = tmp_path / "settings.xml"
    settings.write_text("<settings>")
    with pytest.raises(RuntimeMissing, match=r"settings\.xml"):
        find_repository(RuntimeConfig(), settings)


def test_the_default_is_the_one_that_spark_resolves_from(tmp_path: Path):
    found = find_repository(RuntimeConfig(), tmp_path / "absent.xml")
    parts = urlsplit(found.address)
    assert (parts.scheme, parts.path) == ("https", "/maven2/")
    assert "spark.jars.packages" in str(found)


def test_a_login_in_the_address_is_sent_and_never_shown(tmp_path: Path):
    seen: list[tuple[str, str | None]] = []

    class Guarded(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append((self.path, self.headers["Authorization"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Guarded)
    Thread(target=server.handle_request, daemon=True).start()
    repository = Repository(f"http://me:p%40ss@127.0.0.1:{server.server_port}/m2/", "test")
    repository.open("a/b.jar").close()
    server.server_close()
    assert seen == [("/m2/a/b.jar", "Basic " + base64.b64encode(b"me:p@ss").decode())]
    assert "p%40ss" not in str(repository)
