"""What was set, and where: the three places that can set an option, brought to one form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lodestream.config.lines import line_of
from lodestream.config.model import SECTIONS
from lodestream.config.problems import Problems
from lodestream.config.schema import OPTIONS, TOP_KEYS, Option, section_keys
from lodestream.config.secret import references


@dataclass(frozen=True, slots=True)
class Given:
    """One value as the user gave it. `setting` is the name inside a table such as kafka.options."""

    option: Option
    setting: str | None
    value: object
    origin: str  # short, for `lode doctor`
    place: str  # exact, for errors
    textual: bool = False  # environment variables are text: "4" is a number there

    @property
    def key(self) -> str:
        return f"{self.option.key}.{self.setting}" if self.setting else self.option.key


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A lode.toml that parsed."""

    path: Path
    text: str
    data: Mapping[str, Any]
    lines: dict[tuple[str, ...], int]

    def place(self, path: tuple[str, ...]) -> str:
        return f"{self.path}:{line_of(path, self.lines)}"

    def origin(self, path: tuple[str, ...]) -> str:
        return f"{self.path.name}:{line_of(path, self.lines)}"

    def profiles(self) -> dict[str, Any]:
        found = self.data.get("profiles", {})
        return found if isinstance(found, dict) else {}


def given_top(file: ConfigFile, problems: Problems) -> Iterator[Given]:
    """The keys above the profiles."""
    for name, value in file.data.items():
        path = (name,)
        if name in SECTIONS:
            problems.add(
                file.place(path),
                f"[{name}] stands outside a profile",
                fix=f"write [profiles.local.{name}]",
            )
        elif name not in TOP_KEYS:
            problems.unknown(file.place(path), "key", name, TOP_KEYS)
        elif name != "profiles":
            yield Given(OPTIONS[name], None, value, file.origin(path), file.place(path))
        elif not isinstance(value, dict) or not all(isinstance(one, dict) for one in value.values()):
            problems.add(file.place(path), "profiles must be tables", fix="write [profiles.local.kafka]")


def given_profile(file: ConfigFile, profile: str, problems: Problems) -> Iterator[Given]:
    """What one profile of the file sets."""
    for section, body in file.profiles()[profile].items():
        path = ("profiles", profile, section)
        if section not in SECTIONS:
            problems.unknown(file.place(path), f"section in profile {profile}", section, SECTIONS)
        elif not isinstance(body, dict):
            problems.add(file.place(path), f"{section} must be a table", fix=f"write [profiles.{profile}.{section}]")
        else:
            yield from _given_section(file, path, body, problems)


def _given_section(
    file: ConfigFile, path: tuple[str, ...], body: Mapping[str, Any], problems: Problems
) -> Iterator[Given]:
    section = path[-1]
    for name, value in body.items():
        here = (*path, name)
        option = OPTIONS.get(f"{section}.{name}")
        if option is None:
            problems.unknown(file.place(here), f"key in [{section}]", name, section_keys(section))
        elif option.kind == "settings" and isinstance(value, dict):
            for inner, setting in _flat(value):
                spot = (*here, *inner)
                yield Given(option, ".".join(inner), setting, file.origin(spot), file.place(spot))
        else:
            yield Given(option, None, value, file.origin(here), file.place(here))


def _flat(value: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    # TOML reads the unquoted key security.protocol as a table `security`; the user meant a dotted name.
    for name, inner in value.items():
        if isinstance(inner, dict):
            yield from (((name, *rest), leaf) for rest, leaf in _flat(inner))
        else:
            yield (name,), inner


def given_environment(environ: Mapping[str, str], file: ConfigFile | None, problems: Problems) -> Iterator[Given]:
    """The LODE_<SECTION>_<KEY> variables. A variable that the file refers to by name is the user's own."""
    variables = {option.variable: option for option in OPTIONS.values()}
    own = set(references(file.text)) if file else set()
    ours = re.compile(f"LODE_({'|'.join(SECTIONS)})_", re.IGNORECASE)
    for variable in sorted(name for name in environ if environ[name]):  # set to nothing means not set
        place = f"environment variable {variable}"
        option = variables.get(variable)
        if option is None:
            if ours.match(variable) and variable not in own:
                problems.unknown(place, "variable", variable, variables)
        elif option.kind == "settings":
            yield from _given_json(option, environ[variable], variable, problems)
        else:
            yield Given(option, None, environ[variable], variable, place, textual=True)


def _given_json(option: Option, text: str, variable: str, problems: Problems) -> Iterator[Given]:
    place = f"environment variable {variable}"
    try:
        settings = json.loads(text)
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        problems.add(place, "is not a JSON object", fix=f"""{variable}='{{"name": "value"}}'""")
        return
    for name, value in settings.items():
        yield Given(option, name, value, variable, place, textual=True)


def given_arguments(overrides: Mapping[str, object], problems: Problems) -> Iterator[Given]:
    """Values passed by the caller; None means that the caller has no opinion."""
    for key, value in overrides.items():
        option, setting = _split(key)
        place = f"argument {key}"
        if option is None:
            problems.unknown(place, "key", key, OPTIONS)
        elif isinstance(value, Mapping) and option.kind == "settings":
            for name, inner in value.items():
                yield Given(option, name, inner, "argument", place)
        elif value is not None:
            yield Given(option, setting, value, "argument", place)


def _split(key: str) -> tuple[Option | None, str | None]:
    if key in OPTIONS:
        return OPTIONS[key], None
    for option in OPTIONS.values():
        if option.kind == "settings" and key.startswith(option.key + "."):
            return option, key.removeprefix(option.key + ".")
    return None, None
