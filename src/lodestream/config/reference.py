"""The reference of all options as Markdown: python -m lodestream.config.reference > docs/configuration.md"""

from __future__ import annotations

import sys

from lodestream.config.duration import format_duration
from lodestream.config.kafka_options import KAFKA_OPTIONS
from lodestream.config.model import SECTIONS
from lodestream.config.schema import OPTIONS, Option, section_keys

_HEAD = """\
# Configuration

A project is configured by `lode.toml`, searched from the current folder upwards; its folder is the project's root.
Without one, the defaults apply in the current folder. This page is generated from the options themselves
(`./dev docs`).

```toml
pipeline = "pipeline.py"          # or "pipeline.py:taxi" when the file has several
profile = "local"                 # used when none is asked for

[profiles.local.engine]
target = "1 s"

[profiles.prod.catalog]
type = "jdbc"
uri = "jdbc:postgresql://db/lake?user=lode&password=${env:LAKE_PASSWORD}"
warehouse = "s3://lake/warehouse"

[profiles.prod.kafka]
bootstrap = "kafka-1:9093,kafka-2:9093"

[profiles.prod.kafka.options]
security.protocol = "SASL_SSL"
sasl.mechanism = "SCRAM-SHA-512"
sasl.jaas.config = "${env:KAFKA_JAAS}"
```

- **Who wins**: an argument, then the environment variable, then the file, then the default. `lode doctor` shows each
  value that is not the default and where it came from, with `--json` every one.
- **Secrets** are written as `${env:NAME}` and read from the environment; they print as `****`. A setting that sounds
  like a secret and holds plain text is an error, and so is a password inside an address.
- **Errors** name file, line and the nearest valid key, and come all at once. All profiles are checked; the variables
  that a profile refers to are needed only when it is used.
- **Durations** are a number and a unit: `200 ms`, `1 s`, `15 min`, `6 h`, `2 days`.
- **The profile `local`** always exists, even when the file does not mention it.
- **Tables of settings** (`properties`, `options`, `conf`) come from the environment as a JSON object:
  `LODE_KAFKA_OPTIONS='{"security.protocol": "SSL"}'`. They are merged name by name.
"""


def render_reference() -> str:
    """The whole page."""
    parts = [_HEAD, "## Top of the file\n", _table(["pipeline", "profile"])]
    for name, section in SECTIONS.items():
        parts += [f"## `[profiles.NAME.{name}]`\n", f"{section.__doc__}\n"]
        parts.append(_table([f"{name}.{key}" for key in section_keys(name)]))
    parts += ["## Kafka options\n", _kafka()]
    return "\n".join(parts)


def _table(keys: list[str]) -> str:
    rows = ["| key | default | variable | meaning |", "|---|---|---|---|"]
    for option in (OPTIONS[key] for key in keys):
        name = option.key.rpartition(".")[2]
        rows.append(f"| `{name}` | {_default(option)} | `{option.variable}` | {_meaning(option)} |")
    return "\n".join(rows) + "\n"


def _default(option: Option) -> str:
    if option.default is None:
        return ""
    shown = format_duration(option.default) if option.kind == "duration" else str(option.default)
    return f"`{shown}`"


def _meaning(option: Option) -> str:
    choices = ", ".join(f"`{one}`" for one in option.choices)
    return f"{option.doc} One of {choices}." if choices else option.doc


def _kafka() -> str:
    listed = "\n".join(f"- `{name}`" for name in KAFKA_OPTIONS)
    return (
        "`kafka.options`, and `options=` of a `Kafka` source, may hold these names. Positions, groups and formats\n"
        f"belong to the engine.\n\n{listed}\n"
    )


if __name__ == "__main__":
    sys.stdout.write(render_reference())
