"""What is wrong with a reference file is told by line, column and value."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from lodestream.errors import SourceUnreadable
from lodestream.sources.reference.lines import (
    fault,
    header_of,
    in_file_order,
    line_numbers,
    line_with,
    named_once,
)

DECLARED = ["zone_id", "borough", "since"]
COLUMNS = {"borough": "string", "zone_id": "int", "since": "date"}


def written(folder: Path, text: str, name: str = "zones.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    ("header", "order"),
    [
        ("zone_id,borough,since\n1,a,2024-01-01\n", DECLARED),
        ("since,zone_id,borough\n", ["since", "zone_id", "borough"]),
        ('\n"Borough",SINCE,zone_id\r\n', ["borough", "since", "zone_id"]),
        ("\ufeffborough,since,zone_id\n", ["borough", "since", "zone_id"]),
    ],
)
def test_columns_are_taken_by_the_names_in_the_header(tmp_path: Path, header: str, order: list[str]) -> None:
    path = written(tmp_path, header)
    assert in_file_order(path, DECLARED, header_of(path)) == order


def test_a_packed_file_has_a_header_too(tmp_path: Path) -> None:
    path = tmp_path / "zones.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert header_of(path) == ["a", "b"]


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ("zone_id,borough\n", "there is no column since"),
        ("zone_id,borough,since,note\n", "column note is not declared"),
        (
            "zoneid,borough,since\n",
            "there is no column zone_id (did you mean zoneid?); column zoneid is not declared (did you mean zone_id?)",
        ),
        ("zone_id,borough,since,Since\n", "column Since comes 2 times"),
        (
            "zone_id, borough,since\n",
            'there is no column borough (did you mean " borough"?); '
            'column " borough" is not declared (did you mean borough?)',
        ),
        (
            "",
            "there is no column zone_id; there is no column borough; there is no column since",
        ),
    ],
)
def test_a_header_that_does_not_name_the_columns_is_told_with_all_that_is_wrong(
    tmp_path: Path, header: str, why: str
) -> None:
    path = written(tmp_path, header)
    with pytest.raises(SourceUnreadable) as refused:
        in_file_order(path, DECLARED, header_of(path))
    assert refused.value.why == f"line 1: {why}"
    assert str(path) in refused.value.what
    assert "let it name zone_id, borough, since, in any order" in str(refused.value.fix)


def test_without_declared_columns_each_name_counts_once(tmp_path: Path) -> None:
    named_once(written(tmp_path, "a,b\n"), ["a", "b"])
    for header in (["a", "b", "a"], []):
        with pytest.raises(SourceUnreadable, match="does not have the columns"):
            named_once(tmp_path / "zones.csv", header)


def test_rows_are_found_by_their_lines_and_empty_lines_are_none(tmp_path: Path) -> None:
    path = written(tmp_path, "\nzone,name\n1,a\n\n2,b\r\n   \n3,c")
    assert line_numbers(path, [0, 1, 2], header=True) == {0: 3, 1: 5, 2: 7}
    assert line_numbers(path, [0], header=False) == {0: 2}
    assert (line_with(path, "2,b"), line_with(path, "3,c"), line_with(path, "4")) == (5, 7, None)


def test_a_value_that_does_not_fit_is_named_with_its_column_unless_it_is_masked() -> None:
    nulls = ["zone_id", "since"]
    assert fault("Queens,one,", "csv", COLUMNS, nulls, ()) == "zone_id is no int: one"
    assert fault('"Queens, NY",x,3.4.24', "csv", COLUMNS, nulls, ["since"]) == "zone_id is no int: x, since is no date"
    assert fault("Queens,1", "csv", COLUMNS, nulls, ()) == "2 values for 3 columns (borough, zone_id, since)"
    assert len(fault(f"Queens,{'9' * 500},", "csv", COLUMNS, nulls, ())) < 120
    assert fault('{"zone_id": "x", "since": null}', "json", COLUMNS, nulls, ()) == "zone_id is no int: x"
    assert fault('{"zone_id": ', "json", COLUMNS, nulls, ()).startswith("no JSON: Expecting value")
    assert fault("[1]", "json", COLUMNS, nulls, ()) == "no JSON object"
