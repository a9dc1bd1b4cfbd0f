"""One set of Kafka settings for two clients: librdkafka (offsets, topics) and Java (records)."""

from __future__ import annotations

from collections.abc import Mapping

from lodestream.config import Secret, reveal

Settings = Mapping[str, str | Secret]

_JAVA_ONLY = (
    "sasl.jaas.config",
    "sasl.login.class",
    "sasl.login.callback.handler.class",
    "sasl.client.callback.handler.class",
    "ssl.truststore.",
    "ssl.keystore.",
    "ssl.protocol",
    "ssl.provider",
    "ssl.enabled.protocols",
    "default.api.timeout.ms",
    "request.timeout.ms",
    "fetch.max.wait.ms",
    "receive.buffer.bytes",
    "send.buffer.bytes",
    "max.poll.records",
)
_NATIVE_ONLY = ("ssl.ca.", "ssl.certificate.", "ssl.key.location", "ssl.key.pem", "sasl.username", "sasl.password")
_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def native_settings(options: Settings) -> dict[str, str]:
    """For librdkafka."""
    return {key: reveal(value) for key, value in options.items() if not key.startswith(_JAVA_ONLY)}


def java_settings(bootstrap: str, options: Settings) -> dict[str, str]:
    """For Spark's Kafka reader; PEM files and user names are translated to what Java calls them."""
    plain = {key: reveal(value) for key, value in options.items()}
    settings = {key: value for key, value in plain.items() if not key.startswith(_NATIVE_ONLY)}
    settings |= _pem(plain)
    module = _MODULES.get(plain.get("sasl.mechanism", ""))
    if module and "sasl.username" in plain and "sasl.jaas.config" not in plain:
        user, password = _quoted(plain["sasl.username"]), _quoted(plain.get("sasl.password", ""))
        settings["sasl.jaas.config"] = f"{module} required username={user} password={password};"
    return {"kafka.bootstrap.servers": bootstrap, **{f"kafka.{key}": value for key, value in settings.items()}}


def _pem(plain: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    if "ssl.ca.location" in plain:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": plain["ssl.ca.location"]}
    if "ssl.ca.pem" in plain:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": plain["ssl.ca.pem"]}
    if "ssl.key.pem" in plain and "ssl.certificate.pem" in plain:
        found |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": plain["ssl.key.pem"],
            "ssl.keystore.certificate.chain": plain["ssl.certificate.pem"],
        }
    return found


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
