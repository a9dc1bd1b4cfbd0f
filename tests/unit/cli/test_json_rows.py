"""A list that is written while it is read is one JSON object, also when reading fails on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from lodestream.cli.screen import print_json_rows, to_json
from lodestream.errors import ConfigError


def failing() -> Iterator[int]:
    yield 1
    yield 2
    raise ConfigError("snapshot 7 has expired", fix="begin anew")


def test_a_list_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    print_json_rows({"table": "t"}, "changes", iter([1, 2]), {"next": 3})
    assert json.loads(capsys.readouterr().out) == {"table": "t", "changes": [1, 2], "next": 3}


def test_an_error_on_the_way_stands_behind_what_was_written(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        print_json_rows({"table": "t"}, "changes", failing(), {"next": 3})
    found = json.loads(capsys.readouterr().out)
    assert found["changes"] == [1, 2]
    assert "next" not in found
    assert found["error"]["what"] == "snapshot 7 has expired"
    assert ended.value.code == found["error"]["exit_code"] == ConfigError("").exit_code


def test_what_json_has_no_word_for_is_text() -> None:
    row = {"nan": float("nan"), "most": float("inf"), "least": [float("-inf")], "bytes": b"\xff\x00", "one": 1.0}
    shown = json.loads(json.dumps(to_json(row), allow_nan=False))
    assert shown == {"nan": "NaN", "most": "Infinity", "least": ["-Infinity"], "bytes": "/wA=", "one": 1.0}
