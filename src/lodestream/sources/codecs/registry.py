"""A client of a schema registry that speaks Confluent's API."""

from __future__ import annotations

import base64
import json
import logging
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any, Literal

from lodestream.errors import DeclarationError, RegistryUnavailable

_log = logging.getLogger(__name__)
Kind = Literal["AVRO", "PROTOBUF", "JSON"]
_TYPE = "application/vnd.schemaregistry.v1+json"
_PASSING = (408, 425, 429, 500, 502, 503, 504)


class UnknownSchema(Exception):
    """The registry answered, and it has no such schema."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Another schema that this one imports."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    kind: Kind
    text: str
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class Compatibility:
    """Whether a schema may follow the ones that are there; `why` is the registry's own explanation."""

    ok: bool
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Registry:
    """Schemas by id and by subject. Each answer is final or raises; nothing is cached here."""

    url: str
    timeout: float = 10.0
    attempts: int = 3

    def by_id(self, schema_id: int) -> RegisteredSchema:
        return _schema(self._call("GET", f"/schemas/ids/{schema_id}"))

    def by_version(self, subject: str, version: int | Literal["latest"] = "latest") -> RegisteredSchema:
        return _schema(self._call("GET", f"/subjects/{_quoted(subject)}/versions/{version}"))

    def register(self, subject: str, schema: RegisteredSchema) -> int:
        """The schema's id, new or as it was. Raises DeclarationError when the registry refuses it."""
        answer = self._call("POST", f"/subjects/{_quoted(subject)}/versions", _body(schema))
        return int(answer["id"])

    def check(self, subject: str, schema: RegisteredSchema) -> Compatibility:
        """Whether the subject's rule lets this schema follow its latest one; a new subject takes any."""
        path = f"/compatibility/subjects/{_quoted(subject)}/versions/latest?verbose=true"
        try:
            answer = self._call("POST", path, _body(schema))
        except UnknownSchema:
            return Compatibility(True)
        return Compatibility(bool(answer["is_compatible"]), tuple(map(str, answer.get("messages") or ())))

    def set_compatibility(self, subject: str, level: str) -> None:
        self._call("PUT", f"/config/{_quoted(subject)}", {"compatibility": level})

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        for attempt in range(1, self.attempts + 1):
            try:
                return self._once(method, path, body)
            except RegistryUnavailable as error:
                _log.warning("registry.retry attempt=%d why=%s", attempt, error.why)
                if attempt == self.attempts:
                    raise
                time.sleep(0.2 * 2**attempt)
        raise AssertionError

    def _once(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        base, headers = _address(self.url)
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(base + path, data, headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise self._refusal(error) from None
        except (OSError, ValueError) as error:
            raise self._unavailable(str(error)) from None

    def _refusal(self, error: urllib.error.HTTPError) -> Exception:
        said = error.read(2000).decode(errors="replace")
        if error.code in _PASSING:
            return self._unavailable(f"it answered {error.code}")
        if error.code == 404:
            return UnknownSchema(said)
        if error.code in (401, 403):
            return self._unavailable(f"it refused our credentials ({error.code})")
        return DeclarationError(
            f"the schema registry refused the request ({error.code})",
            why=_message(said),
            fix="compare the schema with the subject's latest version and its compatibility rule",
        )

    def _unavailable(self, why: str) -> RegistryUnavailable:
        return RegistryUnavailable(
            f"the schema registry at {_address(self.url)[0]} does not answer",
            why=why,
            fix="check that it runs and can be reached from the executors",
        )


def _schema(answer: Any) -> RegisteredSchema:
    references = tuple(
        Reference(str(r["name"]), str(r["subject"]), int(r["version"])) for r in answer.get("references") or ()
    )
    return RegisteredSchema(answer.get("schemaType") or "AVRO", str(answer["schema"]), references)


def _body(schema: RegisteredSchema) -> dict[str, Any]:
    references = [{"name": r.name, "subject": r.subject, "version": r.version} for r in schema.references]
    return {"schema": schema.text, "schemaType": schema.kind, **({"references": references} if references else {})}


def _quoted(subject: str) -> str:
    return urllib.parse.quote(subject, safe="")


def _address(url: str) -> tuple[str, dict[str, str]]:
    """The address without credentials, and the headers: what is printed must not hold a password."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise DeclarationError("the registry's address must start with http:// or https://")
    headers = {"Accept": f"{_TYPE}, application/json", "Content-Type": _TYPE}
    if parts.username is not None:
        who = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        headers["Authorization"] = "Basic " + base64.b64encode(who.encode()).decode()
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}", headers


def _message(said: str) -> str:
    try:
        found = json.loads(said)
        return str(found.get("message", said))
    except (ValueError, AttributeError):
        return said
