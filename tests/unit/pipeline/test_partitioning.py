from __future__ import annotations

import pytest

from lodestream.errors import DeclarationError
from lodestream.pipeline import Location, Partition, parse_partition
from lodestream.pipeline.partitioning import check_partitions

HERE = Location("pipeline.py", 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("region", Partition("identity", "region")),
        ("a.b", Partition("identity", "a.b")),
        ("days(pickup_at)", Partition("days", "pickup_at")),
        (" HOURS( at ) ", Partition("hours", "at")),
        ("bucket(16, id)", Partition("bucket", "id", 16)),
        ("truncate(4,zip)", Partition("truncate", "zip", 4)),
    ],
)
def test_iceberg_transforms_are_read(text: str, expected: Partition) -> None:
    assert parse_partition(text) == expected
    assert parse_partition(str(expected)) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [("dayz(at)", "did you mean days?"), ("days(4, at)", "wrong arguments"), ("bucket(id)", "wrong arguments"),
     ("bucket(0, id)", "wrong arguments"), ("a b", "no partition transform"), ("", "no partition transform")],
)  # fmt: skip
def test_anything_else_is_refused(text: str, words: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        check_partitions(text, HERE)
    assert words in str(caught.value)
    assert str(caught.value).startswith("pipeline.py:3: ")


def test_one_column_has_one_time_transform() -> None:
    assert check_partitions(("days(at)", "bucket(4, at)"), HERE) == ("days(at)", "bucket(4, at)")
    with pytest.raises(DeclarationError, match="two time transforms"):
        check_partitions(("days(at)", "hours(at)"), HERE)
