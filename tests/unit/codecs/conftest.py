"""A registry in this process, for the faults that a real one does not show on demand."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pyarrow as pa
import pytest

from lodestream.sources.codecs import Codec


class FakeRegistry:
    """Schemas by id over HTTP; `failing` answers of 503 come first, and `asked` lists the paths."""

    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self.versions: dict[str, dict[str, Any]] = {}
        self.failing = 0
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def add(self, schema_id: int, text: str, kind: str = "AVRO", **more: Any) -> None:
        self.schemas[schema_id] = {"schema": text, "schemaType": kind, **more}

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        if self.failing:
            self.failing -= 1
            return self._send(request, 503, {"message": "warming up"})
        by_id = {f"/schemas/ids/{key}": schema for key, schema in self.schemas.items()}
        found = by_id.get(request.path) or self.versions.get(request.path)
        return self._send(request, 200, found) if found else self._send(request, 404, {"error_code": 40403})

    @staticmethod
    def _send(request: BaseHTTPRequestHandler, code: int, body: Any) -> None:
        data = json.dumps(body).encode()
        request.send_response(code)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRegistry]:
    monkeypatch.setattr("lodestream.sources.codecs.registry.time.sleep", lambda _: None)
    fake = FakeRegistry()
    yield fake
    fake.server.shutdown()
    fake.server.server_close()


Read = Callable[[Codec, Sequence[bytes | None]], list[Any]]


@pytest.fixture
def read() -> Read:
    """Each row as its columns that are not null, or as its reason."""

    def rows(codec: Codec, values: Sequence[bytes | None]) -> list[Any]:
        columns, errors = codec.decode(pa.array(values, pa.binary()))
        columns.validate(full=True)
        good = [{name: value for name, value in row.items() if value is not None} for row in columns.to_pylist()]
        return [row if error is None else error for row, error in zip(good, errors.to_pylist(), strict=True)]

    return rows
