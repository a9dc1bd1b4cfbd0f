"""A checkpoint folder to a position and back."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from lodestream.errors import ConfigError
from lodestream.sources.stream.checkpoint import LARGEST, capture, rebuild

OFFSET = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":5,"conf":{"spark.x":"y"}}\n{"logOffset":3}\n-'


def checkpoint(folder: Path, files: dict[str, bytes]) -> Path:
    fixed = {"metadata": b'{"id":"q"}', "offsets/7": OFFSET.encode(), "commits/6": b"v1\n{}"}
    for name, content in {**fixed, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_a_rebuilt_checkpoint_has_the_batch_done_and_the_sources_own_files(tmp_path: Path) -> None:
    own = {"sources/0/0": b"\x00\xffbinary", "sources/1/offsets/0": b"v1\n12", "sources/0/.0.crc": b"checksum"}
    position = json.loads(json.dumps(capture(checkpoint(tmp_path / "old", own), 7)))
    rebuild(tmp_path / "new", position)
    made = {str(file.relative_to(tmp_path / "new")) for file in (tmp_path / "new").rglob("*") if file.is_file()}
    assert made == {"metadata", "offsets/0", "commits/0", "sources/0/0", "sources/1/offsets/0"}
    assert (tmp_path / "new/sources/0/0").read_bytes() == b"\x00\xffbinary"
    assert json.loads((tmp_path / "new/metadata").read_text()) == {"id": "q"}
    version, metadata, *offsets = (tmp_path / "new/offsets/0").read_text().split("\n")
    assert (version, offsets) == ("v1", ['{"logOffset":3}', "-"])
    assert json.loads(metadata) == {"batchWatermarkMs": 0, "batchTimestampMs": 5, "conf": {}}


def test_log_entries_that_a_compacted_one_repeats_are_left_out(tmp_path: Path) -> None:
    names = ["0", "1", "2.compact", "3", "4", "5.compact", "6", "10", "notes"]
    folder = checkpoint(tmp_path / "old", {f"sources/0/{name}": name.encode() for name in names})
    rebuild(tmp_path / "new", capture(folder, 7))
    assert {file.name for file in (tmp_path / "new/sources/0").iterdir()} == {"5.compact", "6", "10", "notes"}


def test_a_metadata_line_that_is_not_ours_to_read_is_kept(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "old", {"offsets/7": b"v9\nnot json\n5"})
    assert capture(folder, 7)["offset"] == "v9\nnot json\n5"


def test_too_much_state_of_a_source_is_refused(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(LARGEST)
    with pytest.raises(ConfigError, match="Files"):
        capture(checkpoint(tmp_path, {"sources/0/0": noise}), 7)
