"""One set of options, two clients: each gets what it understands and nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from lodestream import Kafka
from lodestream.config import Secret
from lodestream.sources.kafka.reading import open_topics
from lodestream.sources.kafka.settings import java_settings, native_settings

SASL = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "lode",
    "sasl.password": Secret('pa"ss\\word'),
    "ssl.ca.location": "/etc/kafka/ca.pem",
}


def test_user_and_password_become_a_login_for_java() -> None:
    settings = java_settings("kafka:9093", SASL)
    assert settings["kafka.sasl.jaas.config"] == (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="lode" password="pa\\"ss\\\\word";'
    )
    assert "kafka.sasl.username" not in settings


def test_a_pem_file_becomes_a_trust_store_for_java() -> None:
    settings = java_settings("kafka:9093", SASL)
    assert settings["kafka.ssl.truststore.type"] == "PEM"
    assert settings["kafka.ssl.truststore.location"] == "/etc/kafka/ca.pem"
    assert "kafka.ssl.ca.location" not in settings


def test_the_native_client_keeps_its_own_names_and_sees_the_secret() -> None:
    settings = native_settings(SASL)
    assert settings["sasl.password"] == 'pa"ss\\word'
    assert settings["ssl.ca.location"] == "/etc/kafka/ca.pem"


def test_java_only_settings_stay_away_from_the_native_client() -> None:
    options = {"ssl.truststore.location": "/t.jks", "sasl.jaas.config": "x", "client.id": "lode"}
    assert native_settings(options) == {"client.id": "lode"}


def test_client_certificates_given_as_text_work_for_both() -> None:
    pem = {"ssl.key.pem": Secret("KEY"), "ssl.certificate.pem": "CERT", "ssl.ca.pem": "CA"}
    assert native_settings(pem) == {"ssl.key.pem": "KEY", "ssl.certificate.pem": "CERT", "ssl.ca.pem": "CA"}
    java = java_settings("k:1", pem)
    assert java["kafka.ssl.keystore.key"] == "KEY"
    assert java["kafka.ssl.keystore.certificate.chain"] == "CERT"
    assert java["kafka.ssl.truststore.certificates"] == "CA"


def test_a_login_that_is_written_out_is_passed_as_it_is() -> None:
    options = {**SASL, "sasl.jaas.config": Secret("mine")}
    assert java_settings("k:1", options)["kafka.sasl.jaas.config"] == "mine"


def test_a_connection_is_shared_by_those_alone_who_open_it_in_the_same_way() -> None:
    opening: Any = SimpleNamespace(
        spark=None, table="bronze.a", pipeline="shop", bootstrap="nowhere:1", shared={},
        config=SimpleNamespace(kafka=SimpleNamespace(options={})),
    )  # fmt: skip
    for client in ("ours", "ours", "theirs"):
        open_topics(Kafka("orders", options={"client.id": client}), opening)
    assert len(opening.shared) == 2, "who has other credentials must not be taken for us"
