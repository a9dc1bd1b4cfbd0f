"""A declared function is known by its text and by all code of its project that it reaches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from lodestream.pipeline import load_pipeline
from lodestream.pipeline.reach import source_fingerprint

HEAD = 'from lodestream import Kafka, Pipeline\ntaxi = Pipeline("taxi")\nraw = taxi.bronze("raw", Kafka("t"))\n'
GOLD = "@taxi.gold(keys=['id'])\ndef daily(trips):\n    return {body}\n"
SILVER = "@taxi.silver()\ndef trips(raw):\n    return raw\n"

Files = dict[str, str]


def fingerprint(folder: Path, files: Files) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lode.toml").touch()
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
    before = set(sys.modules)
    try:
        function = load_pipeline("pipeline.py", folder).tables["gold.daily"].function
    finally:
        for name in set(sys.modules) - before:
            del sys.modules[name]
    assert function is not None
    return source_fingerprint(function)


def project(body: str, *, above: str = "", **modules: str) -> Files:
    pipeline = HEAD + dedent(above) + SILVER + GOLD.format(body=body)
    paths = {
        name.replace("____init__", "/INIT").replace("__", "/").replace("INIT", "__init__"): name for name in modules
    }
    return {"pipeline.py": pipeline, **{f"{path}.py": modules[name] for path, name in paths.items()}}


FUNCTION = "def rate(x):\n    return x * {}\n"


def edited(body: str, *, above: str = "", **modules: str) -> tuple[Files, Files]:
    """A project before and after an edit: where the texts say N, it is 1 and then 2."""
    one, two = (
        project(body, above=above.replace("N", n), **{name: text.replace("N", n) for name, text in modules.items()})
        for n in ("1", "2")
    )
    return one, two


RATE = "def rate(x):\n    return x * N\n"
LATE = "def late(x):\n    import shop_math\n    return shop_math.rate(x)\n"
PACKAGE = {
    "lib____init__": "from .deep.math import rate\n",
    "lib__deep____init__": "",
    "lib__deep__math": "from ..base import V\ndef rate(x):\n    return V\n",
    "lib__base": "V = N\n",
}
BASE = "class Base:\n    def of(self, x):\n        return N\nclass Rate(Base): ...\n"
ONE_OF_TWO = "try:\n    1 / 0\nexcept ArithmeticError:\n    def rate(x):\n        return N\n"
DECORATED = "def times(f):\n    return lambda x: N * f(x)\n@times\ndef rate(x):\n    return x\n"
# By what it is that was edited.
EDITS = {
    "its own text": (project("trips.a"), project("trips.b")),
    "the option of its declaration": (
        project("trips"),
        {"pipeline.py": project("trips")["pipeline.py"].replace("keys=['id']", "keys=['day']")},
    ),
    "a function beside it": edited("rate(trips)", above=RATE),
    "a constant beside it": edited("trips * VAT", above="VAT = N\n"),
    "a constant that is changed in place": edited("trips * VAT['de']", above="VAT = {}\nVAT['de'] = N\n"),
    "a constant that a call fills": edited("trips * VAT['de']", above="VAT = {}\nVAT.update(de=N)\n"),
    "a function of a function": edited(
        "rate(trips)", above="def deep(x):\n    return N\ndef rate(x):\n    return deep(x)\n"
    ),
    "an imported function": edited("rate(trips)", above="from shop_math import rate\n", shop_math=RATE),
    "one under another name": edited("r(trips)", above="from shop_math import rate as r\n", shop_math=RATE),
    "a function of an imported module": edited("shop_math.rate(trips)", above="import shop_math\n", shop_math=RATE),
    "a constant that an imported function uses": edited(
        "shop_math.rate(trips)", above="import shop_math\n", shop_math="V = N\ndef rate(x):\n    return V\n"
    ),
    "a module that is handed on": edited(
        "getattr(shop_math, 'rate')(trips)", above="import shop_math\n", shop_math=RATE
    ),
    "a star import": edited("rate(trips)", above="from shop_math import *\n", shop_math=RATE),
    "an import inside a function": edited("late(trips)", above=LATE, shop_math=RATE),
    "a module of a package, by relative imports": edited("rate(trips)", above="from lib import rate\n", **PACKAGE),
    "a module of a bare folder": edited("bare.math.rate(trips)", above="import bare.math\n", bare__math=RATE),
    "a module imported from a bare folder": edited(
        "math.rate(trips)", above="from bare import math\n", bare__math=RATE
    ),
    "a class and its base": edited("Rate().of(trips)", above=BASE),
    "one of two definitions": edited("rate(trips)", above=ONE_OF_TWO),
    "a decorator": edited("rate(trips)", above=DECORATED),
    "a lambda": edited("rate(trips)", above="rate = lambda x: x * N\n"),
}


@pytest.mark.parametrize("reached", EDITS)
def test_an_edit_of_what_the_function_reaches_is_noticed(reached: str, tmp_path: Path) -> None:
    before, after = EDITS[reached]
    first = fingerprint(tmp_path / "a", before)
    assert fingerprint(tmp_path / "b" / "elsewhere", before) == first, "the folder's path must not count"
    assert fingerprint(tmp_path / "a", after) != first


CLOSURE = """
    def make(rate):
        def daily(trips):
            return trips * rate
        return daily
    taxi.gold(keys=["id"])(make({}))
"""
HELD = """
    class Rate:
        def __init__(self, value):
            self.value = value
        def of(self, x):
            return x * self.value
    def make(rate):
        def daily(trips):
            return rate.of(trips)
        return daily
    taxi.gold(keys=["id"])(make(Rate({})))
"""


@pytest.mark.parametrize("text", [CLOSURE, HELD])
def test_what_a_closure_holds_is_noticed(text: str, tmp_path: Path) -> None:
    one, two = ({"pipeline.py": HEAD + SILVER + dedent(text).format(value)} for value in ("2", "3"))
    first = fingerprint(tmp_path / "a", one)
    assert fingerprint(tmp_path / "b", one) == first
    assert fingerprint(tmp_path / "a", two) != first


def test_a_closure_that_holds_the_projects_folder_is_the_same_elsewhere(tmp_path: Path) -> None:
    text = CLOSURE.format("str(Path(__file__).parent)")
    files = {"pipeline.py": "from pathlib import Path\n" + HEAD + SILVER + dedent(text)}
    assert fingerprint(tmp_path / "a", files) == fingerprint(tmp_path / "b", files)


# Edits that change nothing of what the function does.
IDLE = {
    "an input of the same name": (project("trips"), {
        "pipeline.py": project("trips")["pipeline.py"].replace("return raw", "return raw.where('x')")}),
    "another function": (project("trips", above="def other():\n    return 1\n"),
                         project("trips", above="def other():\n    return 2\n")),
    "another function of the module it imports": (
        project("shop_math.rate(trips)", above="import shop_math\n", shop_math=FUNCTION.format(2) + "V = 1\n"),
        project("shop_math.rate(trips)", above="import shop_math\n", shop_math="V = 2\n\n" + FUNCTION.format(2))),
    "another table of the pipeline that it names": (
        project("taxi and trips"),
        {"pipeline.py": project("taxi and trips")["pipeline.py"] + "taxi.gold('x', sql='SELECT 1')\n"}),
    "lines above": (project("VAT", above="VAT = 1\n"), project("VAT", above="\n\n# a remark\nVAT = 1\n")),
}  # fmt: skip


@pytest.mark.parametrize("edit", IDLE)
def test_an_edit_of_what_it_does_not_reach_is_not(edit: str, tmp_path: Path) -> None:
    before, after = IDLE[edit]
    assert fingerprint(tmp_path, after) == fingerprint(tmp_path, before)


def test_circles_end(tmp_path: Path) -> None:
    above = "def even(n):\n    return n == 0 or odd(n - 1)\ndef odd(n):\n    return not even(n)\n"
    loop = (
        "def make():\n    def daily(trips):\n        return daily\n    return daily\ntaxi.gold(keys=['id'])(make())\n"
    )
    assert fingerprint(tmp_path / "a", project("even(trips)", above=above))
    assert fingerprint(tmp_path / "b", {"pipeline.py": HEAD + SILVER + loop})


def test_every_process_finds_the_same(tmp_path: Path) -> None:
    files = project(
        "rate({'a', 'b', 'c'})", above="import os, uuid\nRUN = uuid.uuid4()\ndef rate(x):\n    return RUN\n"
    )
    here = fingerprint(tmp_path, files)
    program = (
        "import sys; from pathlib import Path; from lodestream.pipeline import load_pipeline;"
        "from lodestream.pipeline.reach import source_fingerprint as f;"
        "print(f(load_pipeline('pipeline.py', Path(sys.argv[1])).tables['gold.daily'].function));"
        "assert 'pyspark' not in sys.modules"
    )
    there = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True
    ).stdout
    assert there.strip() == here


def test_a_function_without_text_is_known_by_its_code() -> None:
    one, two = {}, {}
    exec("def daily(trips):\n    return trips + 1\n", one)
    exec("def daily(trips):\n    return trips + 2\n", two)
    assert source_fingerprint(one["daily"]) == source_fingerprint(one["daily"])
    assert source_fingerprint(one["daily"]) != source_fingerprint(two["daily"])
