"""Values that Python has no type for end no reader."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from lodestream.tables.python_rows import python_rows

OLD = pa.array([0, -800_000, None], pa.int32()).cast(pa.date32())
LATE = pa.array([0, 400_000_000_000_000_000, None], pa.int64()).cast(pa.timestamp("us"))


def test_dates_beyond_pythons_years_come_as_text_and_the_others_as_they_are() -> None:
    rows = list(python_rows(pa.record_batch({"day": OLD, "at": LATE, "n": pa.array([1, 2, 3])})))
    assert [row["n"] for row in rows] == [1, 2, 3]
    assert rows[0]["day"] == date(1970, 1, 1)
    assert rows[1]["day"] == "-0221-09-04"
    assert rows[1]["at"].startswith("14645-")
    assert (rows[2]["day"], rows[2]["at"]) == (None, None)


@pytest.mark.parametrize(
    ("nested", "wanted"),
    [
        (pa.StructArray.from_arrays([OLD], ["d"]), {"d": "-0221-09-04"}),
        (pa.ListArray.from_arrays([0, 1, 2, 3], OLD), ["-0221-09-04"]),
        (pa.MapArray.from_arrays([0, 1, 2, 3], pa.array(["a", "b", "c"]), OLD), [("b", "-0221-09-04")]),
    ],
)
def test_inside_other_values_too(nested: pa.Array, wanted: object) -> None:
    assert list(python_rows(pa.record_batch({"x": nested})))[1]["x"] == wanted
