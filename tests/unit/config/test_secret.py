"""Secrets come from the environment and never print."""

from __future__ import annotations

from pathlib import Path

import pytest

from lodestream.config import Secret, load_config, reveal, sounds_secret
from lodestream.errors import ConfigError

JAAS = '[profiles.local.kafka.options]\nsasl.jaas.config = "${env:JAAS}"\n'


def write(folder: Path, text: str) -> None:
    (folder / "lode.toml").write_text(text, encoding="utf-8")


def test_a_referenced_secret_is_read_and_shown_as_stars(tmp_path: Path) -> None:
    write(tmp_path, JAAS)
    config = load_config(tmp_path, environ={"JAAS": "hunter2"})
    value = config.kafka.options["sasl.jaas.config"]
    assert reveal(value) == "hunter2"
    assert f"{value} {value!r}" == "**** ****"
    assert "hunter2" not in repr(config)
    assert ("kafka.options.sasl.jaas.config", "****", "lode.toml:2") in config.describe()


@pytest.mark.parametrize(
    ("section", "line"),
    [
        ("kafka.options", 'sasl.jaas.config = "hunter2"'),
        ("kafka.options", '"ssl.keystore.password" = "hunter2"'),
        ("catalog.properties", '"s3.secret-access-key" = "hunter2"'),
        ("catalog.properties", 'token = "hunter2"'),
        ("spark.conf", '"spark.hadoop.fs.s3a.secret.key" = "hunter2"'),
        ("catalog", 'uri = "jdbc:postgresql://me:hunter2@db/lake"'),
        ("catalog", 'uri = "jdbc:postgresql://db/lake?user=me&password=hunter2"'),
    ],
)
def test_a_plain_secret_is_refused_and_not_repeated(tmp_path: Path, section: str, line: str) -> None:
    for profile in ("local", "unused"):
        write(tmp_path, f"[profiles.{profile}.{section}]\n{line}\n")
        with pytest.raises(ConfigError, match=r"lode\.toml:2.*plain text") as caught:
            load_config(tmp_path, environ={})
        assert "${env:" in str(caught.value.fix)
        assert "hunter2" not in str(caught.value)


def test_a_plain_secret_that_a_variable_overrules_is_still_refused(tmp_path: Path) -> None:
    write(tmp_path, '[profiles.local.kafka.options]\nsasl.password = "hunter2"\n')
    with pytest.raises(ConfigError, match="plain text"):
        load_config(tmp_path, environ={"LODE_KAFKA_OPTIONS": '{"sasl.password": "other"}'})


def test_a_reference_inside_an_address_is_filled_and_hidden(tmp_path: Path) -> None:
    write(
        tmp_path,
        '[profiles.local.catalog]\ntype = "jdbc"\nuri = "jdbc:postgresql://db/lake?password=${env:PW}"\n',
    )
    config = load_config(tmp_path, environ={"PW": "hunter2"})
    assert config.catalog_uri() == "jdbc:postgresql://db/lake?password=hunter2"
    assert "hunter2" not in repr(config) + str(config.describe())


def test_an_unset_variable_is_named_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, JAAS)
    with pytest.raises(ConfigError, match=r"lode\.toml:2.*variable JAAS, which is not set"):
        load_config(tmp_path, environ={})


def test_secrets_of_a_profile_not_in_use_need_not_be_set(tmp_path: Path) -> None:
    write(tmp_path, JAAS.replace("local", "prod"))
    assert load_config(tmp_path, environ={}).kafka.options == {}


def test_an_argument_may_carry_a_secret_but_not_in_plain_text(tmp_path: Path) -> None:
    key = "kafka.options.sasl.password"
    config = load_config(tmp_path, overrides={key: Secret("hunter2")}, environ={})
    assert config.kafka.options == {"sasl.password": Secret("hunter2")}
    with pytest.raises(ConfigError, match="plain text"):
        load_config(tmp_path, overrides={key: "hunter2"}, environ={})


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("sasl.password", True),
        ("sasl.jaas.config", True),
        ("s3.access-key-id", True),
        ("credential", True),
        ("ssl.keystore.key", True),
        ("security.protocol", False),
        ("sasl.oauthbearer.token.endpoint.url", False),
        ("ssl.keystore.location", False),
        ("spark.ui.enabled", False),
    ],
)
def test_names_that_sound_secret(name: str, secret: bool) -> None:
    assert sounds_secret(name) is secret


def test_a_password_in_an_address_from_the_environment_is_not_shown(tmp_path: Path) -> None:
    environ = {"LODE_CATALOG_URI": "jdbc:postgresql://me:hunter2@db/lake"}
    config = load_config(tmp_path, environ=environ)
    assert config.catalog_uri() == environ["LODE_CATALOG_URI"]
    assert "hunter2" not in repr(config) + str(config.describe())


def test_a_reference_without_a_name_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, JAAS.replace("${env:JAAS}", "${env:}"))
    with pytest.raises(ConfigError, match="reference without a name"):
        load_config(tmp_path, environ={})
