"""Lines of keys in any TOML that tomllib accepts."""

from __future__ import annotations

import tomllib

from lodestream.config.lines import key_lines, line_of

TEXT = '''# a comment with = and [brackets]
pipeline = "a # b = c" # trailing
"quoted.key" = 'x'
text = """
[not.a.header]
fake = 1
"""
list = [
  "one", # comment ]
  { inner = "]" },
]
[profiles.prod.kafka] # note
bootstrap = 'x:1'
options."security.protocol" = "SSL"

  [ profiles . "with space" . engine ]
  target = '1 s'
inline = { a.b = 1, c = "}" }
[[many]]
last = 1'''


def test_every_key_is_found_on_its_line() -> None:
    tomllib.loads(TEXT)
    lines = key_lines(TEXT)
    assert lines["pipeline",] == 2
    assert lines["quoted.key",] == 3
    assert lines["list",] == 8
    assert lines["profiles", "prod", "kafka"] == 12
    assert lines["profiles", "prod", "kafka", "bootstrap"] == 13
    assert lines["profiles", "prod", "kafka", "options", "security.protocol"] == 14
    assert lines["profiles", "with space", "engine", "target"] == 17
    assert lines["many", "last"] == 20
    assert ("fake",) not in lines


def test_a_key_of_an_inline_table_is_on_the_line_of_its_table() -> None:
    lines = key_lines(TEXT)
    assert line_of(("profiles", "with space", "engine", "inline", "a", "b"), lines) == 18
    assert line_of(("nowhere",), lines) == 1
