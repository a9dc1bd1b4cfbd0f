"""Reading the configuration: argument, then environment, then lode.toml, then default."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lodestream.config.given import (
    ConfigFile,
    Given,
    given_arguments,
    given_environment,
    given_profile,
    given_top,
)
from lodestream.config.lines import key_lines
from lodestream.config.model import ADDRESSES, SECTIONS, Config
from lodestream.config.problems import Problems
from lodestream.config.schema import OPTIONS, nearest
from lodestream.config.secret import Secret, holds_password
from lodestream.config.values import check, check_secrecy, resolve
from lodestream.errors import ConfigError

FILE_NAME = "lode.toml"


def load_config(
    start: Path | None = None,
    profile: str | None = None,
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Config:
    """The configuration of the project around `start`; every problem of it in one ConfigError."""
    start = (start or Path.cwd()).resolve()
    file = _read(start)
    problems = Problems()
    top = list(given_top(file, problems)) if file else []
    outer = [*given_environment(environ, file, problems), *given_arguments(overrides or {}, problems)]
    if profile is not None:
        outer.append(Given(OPTIONS["profile"], None, profile, "argument", "argument profile"))
    chosen = _choose_profile([*top, *outer], file, start, problems)
    inner = _profile_values(file, chosen, problems)
    values = _settle([*top, *inner, *outer], environ, problems)
    _check_together(values, problems)
    problems.raise_any()
    return _build(values, start, file)


def find_file(start: Path) -> Path | None:
    """The lode.toml of `start` or of the nearest folder above it."""
    candidates = (folder / FILE_NAME for folder in (start, *start.parents))
    return next((path for path in candidates if path.is_file()), None)


def _read(start: Path) -> ConfigFile | None:
    path = find_file(start)
    if path is None:
        return None
    try:
        text = path.read_text(encoding="utf-8-sig")
        data = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read", why=str(error.strerror)) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text", why=str(error), fix="save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise _broken_toml(path, text, str(error)) from error
    return ConfigFile(path, text, data, key_lines(text.replace("\r\n", "\n")))


def _broken_toml(path: Path, text: str, message: str) -> ConfigError:
    found = re.search(r"line (\d+)", message)
    line = int(found[1]) if found else max(1, len(text.splitlines()))
    why = re.sub(r"\s*\(at .*\)$", "", message)
    return ConfigError(f"{path}:{line}: not valid TOML", why=why, fix=f"correct line {line}")


def _choose_profile(given: Iterable[Given], file: ConfigFile | None, start: Path, problems: Problems) -> str | None:
    asked = [one for one in given if one.option.key == "profile"]
    if not asked:
        return "local"
    name = asked[-1].value
    known = list(file.profiles()) if file else []
    if name in known or name == "local":
        return str(name)
    if not isinstance(name, str):
        return None
    _missing_profile(asked[-1], name, known, file, start, problems)
    return None


def _missing_profile(
    asked: Given, name: str, known: list[str], file: ConfigFile | None, start: Path, problems: Problems
) -> None:
    if file is None:
        why = f"there is no {FILE_NAME} in {start} or any folder above it"
    else:
        why = f"{file.path} has the profiles: {', '.join(sorted(known)) or 'none'}"
    close = nearest(name, known)
    fix = f"did you mean {close}?" if close else f"add [profiles.{name}.kafka] to {FILE_NAME}"
    problems.add(asked.place, f'there is no profile "{name}"', why=why, fix=fix)


def _profile_values(file: ConfigFile | None, chosen: str | None, problems: Problems) -> list[Given]:
    """The values of the chosen profile. The others are checked too: an error there waits for production."""
    values: list[Given] = []
    for name, body in (file.profiles() if file else {}).items():
        if not isinstance(body, dict) or file is None:
            continue
        given = list(given_profile(file, name, problems))
        if name == chosen:
            values = given
        else:
            _check_unused(given, problems)
    return values


def _check_unused(given: Iterable[Given], problems: Problems) -> None:
    for one in given:
        if check_secrecy(one, problems) and "${env:" not in str(one.value):
            check(one, problems)


def _settle(given: Iterable[Given], environ: Mapping[str, str], problems: Problems) -> dict[str, tuple[Given, object]]:
    """The value of each key: the last one given wins, and one that is overruled need not resolve."""
    winners = {one.key: one for one in given if check_secrecy(one, problems)}
    settled: dict[str, tuple[Given, object]] = {}
    for key, one in winners.items():
        try:
            resolved = resolve(one, environ)
        except KeyError as error:
            _unset_variable(one, error.args[0], problems)
            continue
        value = check(resolved, problems)
        if value is not None:
            settled[key] = (one, value)
    return settled


def _unset_variable(given: Given, name: str, problems: Problems) -> None:
    if not name:
        problems.add(given.place, f"{given.key} has a reference without a name", fix="write ${env:NAME}")
        return
    problems.add(
        given.place,
        f"{given.key} refers to the environment variable {name}, which is not set",
        fix=f"export {name}=...",
    )


def _check_together(values: Mapping[str, tuple[Given, object]], problems: Problems) -> None:
    if "catalog.type" not in values:
        return
    given, kind = values["catalog.type"]
    example = ADDRESSES.get(str(kind))
    if example and "catalog.uri" not in values:
        problems.add(
            given.place,
            f'catalog.type "{kind}" needs catalog.uri',
            fix=f'write uri = "{example}" beside it, or set LODE_CATALOG_URI',
        )


def _build(values: Mapping[str, tuple[Given, object]], start: Path, file: ConfigFile | None) -> Config:
    plain: dict[str, Any] = {}
    sections: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    for given, value in values.values():
        section, _, name = given.option.key.rpartition(".")
        if given.setting:
            sections[section].setdefault(name, {})[given.setting] = value
        elif section:
            sections[section][name] = value
        else:
            plain[name] = value
    return Config(
        root=file.path.parent if file else start,
        file=file.path if file else None,
        origins={key: given.origin for key, (given, _) in values.items()},
        hidden=frozenset(key for key, (given, value) in values.items() if _is_hidden(given, value)),
        **plain,
        **{name: section(**sections[name]) for name, section in SECTIONS.items()},
    )


def _is_hidden(given: Given, value: object) -> bool:
    return isinstance(value, Secret) or "${env:" in str(given.value) or holds_password(str(value))
