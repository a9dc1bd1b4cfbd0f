"""Reference files are found wherever they lie."""

from __future__ import annotations

import csv

import pytest

from lodestream.pipeline.sources import ReferenceData
from lodestream.sources.reference.file import ReferenceFile


@pytest.mark.parametrize(
    "folder", ["mit Leerzeichen ä", "100%", "%20", "a[b]", "{x,y}", "what?", "star*", "hash#1", "a:b"]
)
def test_a_reference_file_is_read_from_any_folder(spark, tmp_path, folder):
    (tmp_path / folder).mkdir()
    file = tmp_path / folder / "zones.csv"
    file.write_text("id,name\n1,North\n2,South\n")
    frame = ReferenceFile(spark, ReferenceData(str(file), format="csv", schema="id int, name string"), None).frame()
    assert sorted(map(tuple, frame.collect())) == [(1, "North"), (2, "South")]


def test_quotes_are_doubled_inside_quotes_as_in_every_other_csv(spark, tmp_path):
    file = tmp_path / "names.csv"
    lines = ["id,name", '1,"say ""hi"""', '2,"x ""y"" z, and more"', '3,""""', '4,"a back\\slash"', '5,plain "inside"']
    file.write_text("\n".join(lines) + "\n")
    expected = [(int(row["id"]), row["name"]) for row in csv.DictReader(lines)]
    frame = ReferenceFile(spark, ReferenceData(str(file), format="csv", schema="id int, name string"), None).frame()
    assert sorted(map(tuple, frame.collect())) == expected
