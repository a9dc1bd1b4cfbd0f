"""Reference files are found wherever they lie."""

from __future__ import annotations

import pytest

from lodestream.pipeline import Files
from lodestream.sources.reference import ReferenceFile


@pytest.mark.parametrize(
    "folder", ["mit Leerzeichen ä", "100%", "%20", "a[b]", "{x,y}", "what?", "star*", "hash#1", "a:b"]
)
def test_a_reference_file_is_read_from_any_folder(spark, tmp_path, folder):
    (tmp_path / folder).mkdir()
    file = tmp_path / folder / "zones.csv"
    file.write_text("id,name\n1,North\n2,South\n")
    frame = ReferenceFile(spark, Files(str(file), format="csv", schema="id int, name string"), None).frame()
    assert sorted(map(tuple, frame.collect())) == [(1, "North"), (2, "South")]
