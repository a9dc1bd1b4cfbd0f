"""lode.toml, the environment and arguments: who wins, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from lodestream.config import Config, Secret, load_config
from lodestream.errors import ConfigError


def write(folder: Path, text: str) -> Path:
    file = folder / "lode.toml"
    file.write_text(text, encoding="utf-8")
    return file


def load(folder: Path, text: str, **given: object) -> Config:
    write(folder, text)
    return load_config(folder, **{"environ": {}, **given})  # type: ignore[arg-type]


def refused(folder: Path, text: str, **given: object) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(folder, text, **given)
    return caught.value


def test_without_a_file_the_defaults_apply_in_the_start_folder(tmp_path: Path) -> None:
    config = load_config(tmp_path, environ={})
    assert (config.root, config.file, config.profile, config.pipeline) == (
        tmp_path, None, "local", "pipeline.py",
    )  # fmt: skip
    assert config.kafka.bootstrap == "embedded"
    assert config.engine.target == 1.0
    assert config.catalog_uri() == f"sqlite:///{tmp_path}/.lode/catalog.db"
    assert config.warehouse() == f"{tmp_path}/.lode/warehouse"


def test_the_file_is_found_from_a_folder_below(tmp_path: Path) -> None:
    file = write(tmp_path, 'pipeline = "flows.py:taxi"')
    below = tmp_path / "gold" / "daily zürich"
    below.mkdir(parents=True)
    config = load_config(below, environ={})
    assert (config.file, config.root, config.pipeline) == (file, tmp_path, "flows.py:taxi")


def test_argument_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    text = '[profiles.local.kafka]\nbootstrap = "file:1"\n[profiles.local.engine]\ntarget = "2 s"\n'
    text += 'poll = "50 ms"\n'
    environ = {"LODE_KAFKA_BOOTSTRAP": "env:1", "LODE_ENGINE_TARGET": "3 s"}
    config = load(tmp_path, text, environ=environ, overrides={"kafka.bootstrap": "arg:1", "engine.workers": None})
    assert config.kafka.bootstrap == "arg:1"
    assert config.engine.target == 3.0
    assert config.engine.poll == 0.05
    assert config.engine.max_batch_rows == 500_000
    origins = {key: origin for key, _, origin in config.describe()}
    assert origins["kafka.bootstrap"] == "argument"
    assert origins["engine.target"] == "LODE_ENGINE_TARGET"
    assert origins["engine.poll"] == "lode.toml:5"
    assert origins["engine.max_batch_rows"] == "default"


def test_the_profile_is_chosen_by_argument_then_environment_then_file(tmp_path: Path) -> None:
    text = 'profile = "a"\n' + "".join(f'[profiles.{n}.kafka]\nbootstrap = "{n}:1"\n' for n in "abc")
    assert load(tmp_path, text).kafka.bootstrap == "a:1"
    assert load(tmp_path, text, environ={"LODE_PROFILE": "b"}).kafka.bootstrap == "b:1"
    both = load(tmp_path, text, environ={"LODE_PROFILE": "b"}, profile="c")
    assert (both.profile, both.kafka.bootstrap) == ("c", "c:1")


def test_unquoted_dotted_settings_mean_what_the_user_meant(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        '[profiles.local.kafka.options]\nsecurity.protocol = "SSL"\n"request.timeout.ms" = 5000\n'
        "[profiles.local.spark.conf]\nspark.ui.enabled = true\n",
    )
    assert config.kafka.options == {"security.protocol": "SSL", "request.timeout.ms": "5000"}
    assert config.spark.conf == {"spark.ui.enabled": "true"}


def test_settings_from_the_environment_are_json(tmp_path: Path) -> None:
    text = '[profiles.local.kafka.options]\n"security.protocol" = "SSL"\n"client.id" = "me"\n'
    environ = {"LODE_KAFKA_OPTIONS": '{"security.protocol": "SASL_SSL", "sasl.password": "hunter2"}'}
    config = load(tmp_path, text, environ=environ)
    assert config.kafka.options["security.protocol"] == "SASL_SSL"
    assert config.kafka.options["client.id"] == "me"
    assert config.kafka.options["sasl.password"] == Secret("hunter2")
    assert "hunter2" not in repr(config) + str(config.describe())


def test_a_warehouse_folder_is_relative_to_the_project(tmp_path: Path) -> None:
    assert load(tmp_path, '[profiles.local.catalog]\nwarehouse = "data"').warehouse() == f"{tmp_path}/data"
    remote = load(tmp_path, '[profiles.local.catalog]\nwarehouse = "s3://bucket/lake"')
    assert remote.warehouse() == "s3://bucket/lake"


def test_an_unknown_key_names_file_line_and_the_nearest_key(tmp_path: Path) -> None:
    error = refused(tmp_path, '# mine\n\n[profiles.local.kafka]\nbootstrp = "x:1"\n')
    assert error.what == f'{tmp_path}/lode.toml:4: unknown key in [kafka] "bootstrp"'
    assert error.fix == "did you mean bootstrap?"


def test_an_unknown_kafka_option_names_the_nearest(tmp_path: Path) -> None:
    error = refused(tmp_path, '[profiles.local.kafka.options]\n"securty.protocol" = "SSL"\n')
    assert "lode.toml:2" in error.what
    assert error.fix == "did you mean security.protocol?"


def test_offsets_cannot_be_taken_from_the_engine_by_a_kafka_option(tmp_path: Path) -> None:
    assert "auto.offset.reset" in refused(
        tmp_path, '[profiles.local.kafka.options]\nauto.offset.reset = "latest"\n'
    ).what  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('profil = "x"', 1, "profile"),
        ("[kafka]\nbootstrap = 'x:1'", 1, "[profiles.local.kafka]"),
        ("[profiles.local.kafk]\nbootstrap = 'x:1'", 1, "kafka"),
        ("[profiles.local]\nkafka = 'x:1'", 2, "[profiles.local.kafka]"),
        ("profiles = 1", 1, "[profiles.local.kafka]"),
        ("[profiles.local.engine]\n\nworkers = '4'", 3, "not a whole number"),
        ("[profiles.local.engine]\nworkers = true", 2, "not a whole number"),
        ("[profiles.local.engine]\nworkers = 0", 2, "less than 1"),
        ("[profiles.local.engine]\ntarget = 1", 2, "no unit"),
        ("[profiles.local.engine]\ntarget = 'fast'", 2, "not a duration"),
        ("[profiles.local.engine]\ntarget = '1 fortnight'", 2, "unknown unit"),
        ("[profiles.local.engine]\ntarget = '0 s'", 2, "less than"),
        ("[profiles.local.catalog]\ntype = 'hive'", 2, "sqlite, jdbc, rest"),
        ("[profiles.local.catalog]\ntype = 'rest'", 2, "needs catalog.uri"),
        ("[profiles.local.spark]\ndriver_memory = 'lots'", 2, "memory"),
        ("[profiles.local.spark]\nconf = 'x'", 2, "not a table"),
        ("[profiles.local.spark.conf]\n'spark.jars' = ['a']", 2, "list"),
        ("[profiles.local.catalog]\nname = 'my-lake'", 2, "unquoted"),
        ("pipeline = ''", 1, "empty"),
        ("profile = 3", 1, "not a string"),
    ],
)
def test_a_wrong_value_names_file_line_and_reason(tmp_path: Path, text: str, line: int, words: str) -> None:
    error = refused(tmp_path, text)
    assert error.what.startswith(f"{tmp_path}/lode.toml:{line}: ")
    assert words in str(error)
    assert error.fix


def test_several_problems_are_reported_together(tmp_path: Path) -> None:
    text = "pipelin = 'x'\n[profiles.local.engine]\ntarget = 'soon'\n[profiles.prod.kafka]\nbootstrp = 'x:1'\n"
    error = refused(tmp_path, text, environ={"LODE_ENGINE_WORKERS": "many"})
    assert len(error.problems) == 4
    for words in ("lode.toml:1", "lode.toml:3", "lode.toml:5", "LODE_ENGINE_WORKERS"):
        assert words in str(error)


def test_broken_toml_names_file_and_line(tmp_path: Path) -> None:
    assert "lode.toml:2: not valid TOML" in refused(tmp_path, 'pipeline = "a.py"\nprofile = \n').what
    assert "lode.toml:3" in refused(tmp_path, 'pipeline = "a.py"\n\n[profiles.local').what
    (tmp_path / "lode.toml").write_bytes(b'pipeline = "\xff"')
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(tmp_path, environ={})


def test_a_missing_profile_lists_the_profiles_there_are(tmp_path: Path) -> None:
    text = "[profiles.prod.engine]\nworkers = 2\n[profiles.staging.engine]\nworkers = 2\n"
    error = refused(tmp_path, text, profile="prd")
    assert "prod, staging" in str(error.why)
    assert error.fix == "did you mean prod?"
    with pytest.raises(ConfigError, match="any folder above it"):
        load_config(tmp_path.parent, profile="prod", environ={})


def test_an_unknown_variable_of_ours_is_an_error_and_a_foreign_one_is_not(tmp_path: Path) -> None:
    error = refused(tmp_path, "", environ={"LODE_KAFKA_BOOTSTRP": "x:1"})
    assert "did you mean LODE_KAFKA_BOOTSTRAP?" in str(error)
    load(tmp_path, "", environ={"LODE_SEED": "7", "KAFKA_BOOTSTRP": "x"})
    text = '[profiles.local.kafka.options]\nsasl.password = "${env:LODE_KAFKA_PASSWORD}"\n'
    load(tmp_path, text, environ={"LODE_KAFKA_PASSWORD": "pw"})


def test_an_unknown_argument_is_an_error(tmp_path: Path) -> None:
    assert "engine.workers" in str(refused(tmp_path, "", overrides={"engine.worker": 3}))


def test_an_empty_variable_is_as_good_as_none(tmp_path: Path) -> None:
    assert load(tmp_path, "", environ={"LODE_PROFILE": "", "LODE_ENGINE_TARGET": ""}).engine.target == 1.0


def test_a_wrong_variable_is_corrected_as_a_variable(tmp_path: Path) -> None:
    error = refused(tmp_path, "", environ={"LODE_ENGINE_TARGET": "5"})
    assert error.fix == 'set LODE_ENGINE_TARGET="1 s"'
