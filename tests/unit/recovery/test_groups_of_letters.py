"""Letters are grouped by what is wrong, not by the number that it is wrong with."""

from __future__ import annotations

import pytest

from lodestream.recovery.letters import _trouble


@pytest.mark.parametrize(
    ("reasons", "group"),
    [
        (("csv: not UTF-8 at byte 12", "csv: not UTF-8 at byte 0"), "csv: not UTF-8 at byte #"),
        (("json: 1.5 is no int", "json: -1.5 is no int", "json: 7 is no int", "json: -2e-9 is no int"),
         "json: # is no int"),
        (("avro: 2024-01-02 is late", "avro: 2024-01-02T10:00:00 is late"), "avro: # is late"),
        (("protobuf: byte 0x0f of int32 a1", "protobuf: byte 0xff of int32 a1"), "protobuf: byte # of int32 a1"),
        (("rule: at most 5",), "rule: at most 5"),
    ],
)  # fmt: skip
def test_one_trouble_is_one_group(reasons: tuple[str, ...], group: str) -> None:
    assert {_trouble(reason) for reason in reasons} == {group}
