"""Loading a user's file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lodestream.errors import DeclarationError, UserCodeError
from lodestream.pipeline import load_pipeline

TAXI = 'from lodestream import Kafka, Pipeline\ntaxi = Pipeline("taxi")\ntaxi.bronze("raw", Kafka("t"))\n'


def write(folder: Path, text: str, name: str = "pipeline.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_file_runs_once_and_leaves_nothing_behind(tmp_path: Path) -> None:
    write(tmp_path, TAXI + 'open(__file__ + ".runs", "a").write("x")\n')
    before = list(sys.path)
    pipeline = load_pipeline("pipeline.py", tmp_path)
    assert list(pipeline.tables) == ["bronze.raw"]
    assert (tmp_path / "pipeline.py.runs").read_text() == "x"
    assert sys.path == before
    own = [
        name
        for name, module in sys.modules.items()
        if getattr(module, "__file__", None) == str(tmp_path / "pipeline.py")
    ]
    assert own == []
    assert not (tmp_path / "__pycache__").exists()


def test_a_file_in_a_folder_with_spaces_sees_its_neighbours(tmp_path: Path) -> None:
    folder = tmp_path / "my flöws"
    folder.mkdir()
    write(folder, "TOPIC = 'neighbour'\n", "neighbour_of_pipeline.py")
    write(
        folder,
        "from lodestream import Kafka, Pipeline\nfrom neighbour_of_pipeline import TOPIC\n"
        "p = Pipeline('p')\np.bronze('raw', Kafka(TOPIC))\n",
    )
    table = load_pipeline("my flöws/pipeline.py", tmp_path).tables["bronze.raw"]
    assert table.location.line == 4
    assert table.location.file == str(folder / "pipeline.py")
    sys.modules.pop("neighbour_of_pipeline")


def test_an_edited_file_is_read_anew(tmp_path: Path) -> None:
    write(tmp_path, TAXI)
    load_pipeline("pipeline.py", tmp_path)
    write(tmp_path, TAXI.replace('"raw"', '"new"'))
    assert list(load_pipeline("pipeline.py", tmp_path).tables) == ["bronze.new"]


def test_a_name_chooses_one_of_several(tmp_path: Path) -> None:
    write(tmp_path, TAXI + 'orders = Pipeline("orders")\nsame = orders\n')
    assert load_pipeline("pipeline.py:orders", tmp_path).name == "orders"
    with pytest.raises(DeclarationError, match="has 2 pipelines") as caught:
        load_pipeline("pipeline.py", tmp_path)
    assert "pipeline.py:" in str(caught.value.fix)
    with pytest.raises(DeclarationError, match=r'did you mean "pipeline\.py:orders"'):
        load_pipeline("pipeline.py:order", tmp_path)


def test_two_names_for_one_pipeline_are_one_pipeline(tmp_path: Path) -> None:
    write(tmp_path, TAXI + "main = taxi\n")
    assert load_pipeline("pipeline.py", tmp_path).name == "taxi"


def test_a_file_without_a_pipeline_or_no_file_at_all(tmp_path: Path) -> None:
    write(tmp_path, "x = 1\n")
    with pytest.raises(DeclarationError, match="has no pipeline"):
        load_pipeline("pipeline.py", tmp_path)
    with pytest.raises(DeclarationError, match=r'did you mean "pipeline\.py"'):
        load_pipeline("pipelin.py", tmp_path)


def test_an_error_of_the_user_shows_their_traceback_first(tmp_path: Path) -> None:
    path = write(tmp_path, "def half(n):\n    return 1 / n\n\nhalf(0)\n")
    with pytest.raises(UserCodeError) as caught:
        load_pipeline("pipeline.py", tmp_path)
    text = str(caught.value)
    assert text.startswith("Traceback (most recent call last):\n" + f'  File "{path}", line 4')
    assert "return 1 / n" in text
    assert "lodestream/pipeline/load.py" not in text
    assert "ZeroDivisionError" in text


def test_a_missing_module_names_the_way_to_get_it(tmp_path: Path) -> None:
    write(tmp_path, "import nosuchmodule\n")
    with pytest.raises(UserCodeError, match=r"install nosuchmodule, or put nosuchmodule\.py beside"):
        load_pipeline("pipeline.py", tmp_path)


def test_leaving_the_interpreter_is_an_error_like_any_other(tmp_path: Path) -> None:
    write(tmp_path, "import sys\nsys.exit(0)\n")
    with pytest.raises(UserCodeError, match="SystemExit"):
        load_pipeline("pipeline.py", tmp_path)


def test_broken_python_names_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, "x = 1\ndef broken(:\n")
    with pytest.raises(DeclarationError, match="not valid Python") as caught:
        load_pipeline("pipeline.py", tmp_path)
    assert (caught.value.file, caught.value.line) == (str(path), 2)


def test_a_wrong_declaration_keeps_its_own_error(tmp_path: Path) -> None:
    path = write(tmp_path, TAXI + 'taxi.bronze("raw", Kafka("t"))\n')
    with pytest.raises(DeclarationError, match="declared twice") as caught:
        load_pipeline("pipeline.py", tmp_path)
    assert (caught.value.file, caught.value.line) == (str(path), 4)


def test_a_dataclass_in_the_file_works(tmp_path: Path) -> None:
    text = "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\n"
    write(tmp_path, text + TAXI)
    assert load_pipeline("pipeline.py", tmp_path).name == "taxi"


def test_spark_ships_functions_of_the_file_by_value(tmp_path: Path) -> None:
    from pyspark import cloudpickle

    text = "RATE = 3\ndef grow(n):\n    return n * RATE\n@taxi.silver\ndef trips(raw):\n    return grow(raw)\n"
    write(tmp_path, TAXI + text)
    function = load_pipeline("pipeline.py", tmp_path).tables["silver.trips"].function
    shipped = tmp_path / "function.pickle"
    shipped.write_bytes(cloudpickle.dumps(function))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb'))(5))"
    run = subprocess.run([sys.executable, "-c", code, str(shipped)], capture_output=True, text=True, cwd="/")
    assert (run.stdout.strip(), run.returncode) == ("15", 0), run.stderr


def test_a_udf_that_needs_a_session_says_what_to_write(tmp_path: Path) -> None:
    text = 'from pyspark.sql.functions import udf\nclean = udf(str.strip, "string")\n'
    write(tmp_path, TAXI + text)
    with pytest.raises(UserCodeError) as caught:
        load_pipeline("pipeline.py", tmp_path)
    assert "StringType()" in str(caught.value.fix)
