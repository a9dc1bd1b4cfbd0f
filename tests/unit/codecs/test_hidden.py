"""A value that the table's contract masks is not shown in a decoder's reason, whoever declared its columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lodestream import Csv, Json
from lodestream.contracts import Record, column
from lodestream.contracts.masking import NAMED, VARIABLE, MaskingKey
from lodestream.errors import ConfigError, ContractError
from lodestream.pipeline.decoders import DecoderDeclaration as DecodeDecl
from lodestream.sources.codecs import codec_for


class Riders(Record):
    version = "1.0.0"

    mail: str | None = column(source="Mail", masking="hash")
    tags: dict[str, int] | None = column(masking="redact")
    id: int | None = column("int")


EVENT = {"Mail": 5, "tags": {"ada": "x"}, "id": "seven"}
HIDDEN = (
    "json: Mail is a hidden value, not a string; tags[hidden] is a hidden value, not a bigint; "
    "id is 'seven', not an int"
)


@pytest.mark.parametrize("decoder", [Json(), Json("Mail string, tags map<string,bigint>, id int")])
def test_json_reasons_hide_what_the_contract_masks(decoder: DecodeDecl, read: Any, tmp_path: Path) -> None:
    codec = codec_for(decoder, Riders.contract().fields, root=tmp_path)
    assert read(codec, [json.dumps(EVENT).encode()]) == [HIDDEN]


def test_csv_reasons_hide_too_and_other_columns_are_shown(read: Any) -> None:
    codec = codec_for(Csv("MAIL int, id int"), Riders.contract().fields)
    assert read(codec, [b"ada@example.org,x"]) == ["csv: MAIL is a hidden value, not an int; id is 'x', not an int"]


def test_a_key_is_needed_only_to_hash() -> None:
    class Redacted(Record):
        version = "1.0.0"
        mail: str | None = column(masking="redact")

    assert MaskingKey.of_environment(Redacted.contract(), {}) == NAMED
    with pytest.raises(ConfigError, match="hashes mail, and there is no key"):
        MaskingKey.of_environment(Riders.contract(), {})
    with pytest.raises(ContractError, match="too weak"):
        MaskingKey.of_environment(Riders.contract(), {VARIABLE: "short"})
    assert MaskingKey.of_environment(Riders.contract(), {VARIABLE: "0123456789abcdef"}) != NAMED
