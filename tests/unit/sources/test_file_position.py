"""Positions of a folder: small, exact, and JSON."""

from __future__ import annotations

import json
import random
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodestream.errors import SourceRewritten
from lodestream.sources.files import position as positions
from lodestream.sources.files.listing import FileVersion, fingerprint

ROOT = "/data/in"

versions = st.builds(
    FileVersion,
    modified=st.integers(0, 2**53),
    path=st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=40),
    size=st.integers(1, 2**50),
)


@given(st.lists(versions, unique_by=lambda file: file.path, max_size=30))
def test_packing_loses_nothing(files: list[FileVersion]) -> None:
    assert positions.unpack(positions.pack(files)) == files


def test_a_position_survives_json_and_names_its_batch() -> None:
    files = [FileVersion(5, "a", 1), FileVersion(7, "ü/b", 2)]
    since = positions.begin(ROOT)
    to = positions.advance(since, files)
    assert json.loads(json.dumps(to)) == to
    assert positions.batch(json.loads(json.dumps(since)), json.loads(json.dumps(to))) == files
    assert positions.total(to) == fingerprint(files)
    assert positions.mark(to) == (7, "ü/b")


def test_the_mark_never_goes_back() -> None:
    late = positions.advance(
        positions.advance(positions.begin(ROOT), [FileVersion(9, "z", 1)]), [FileVersion(1, "a", 1)]
    )
    assert positions.mark(late) == (9, "z")


def test_positions_that_are_no_neighbours_are_refused() -> None:
    start = positions.begin(ROOT)
    one = positions.advance(start, [FileVersion(1, "a", 1)])
    two = positions.advance(one, [FileVersion(2, "b", 1)])
    with pytest.raises(SourceRewritten):
        positions.batch(start, two)


def test_thousands_of_files_later_a_position_is_as_small_as_before() -> None:
    rng = random.Random(7)
    at = positions.begin(ROOT)
    for batch in range(25):
        names = [f"2024/{batch:03}/part-{i:05}-{uuid.UUID(int=rng.getrandbits(128))}.json.gz" for i in range(200)]
        files = [
            FileVersion(1_700_000_000_000_000 + rng.randrange(10**9), name, rng.randrange(10**8)) for name in names
        ]
        left = files
        while left:
            to = positions.advance(at, left)
            assert len(json.dumps(to)) < 8_000
            left = left[len(positions.batch(at, to)) :]
            at = to
    assert at["read"] == 5_000
