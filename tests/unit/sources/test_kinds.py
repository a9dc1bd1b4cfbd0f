"""A kind of source or codec is known to its own folder: the rest of the house asks the registry."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import lodestream
from lodestream import Kafka
from lodestream.errors import DeclarationError
from lodestream.pipeline.decoders import DecoderDeclaration
from lodestream.sources import Coordinates, SourceDeclaration, register_source
from lodestream.sources.codecs import codec_for
from lodestream.sources.kinds import arrival_in, identity_in, kind_of, located_by, marks_in

HOUSE = Path(lodestream.__file__).parent
SOURCES, CODECS = HOUSE / "sources", HOUSE / "sources" / "codecs"
# Declared by users; Pipeline.reference and other tables are inputs of the house itself.
KINDS = [SOURCES / "files", SOURCES / "kafka", SOURCES / "stream"]
KINDS += sorted(one.parent for one in CODECS.glob("*/codec.py"))
# The lists of what is built in, the public names, and what is written with the public names as users do.
MAY_NAME = {"__init__.py", "sources/__init__.py", "sources/codecs/__init__.py"}
USERS = ("starter/", "demo/")
# Part of the JSON codec, beside its folder.
BESIDE = {"sources/codecs/jvm_json.py": "json"}
# An envelope has a format inside, JSON unless told otherwise.
NESTED = {("debezium", "json")}


def modules() -> list[Path]:
    return sorted(one for one in HOUSE.rglob("*.py") if "_examples" not in one.parts)


def module_of(kind: Path) -> str:
    return ".".join(("lodestream", *kind.relative_to(HOUSE).parts))


@cache
def declared_in(kind: Path) -> set[str]:
    """The classes by which users and readers know a kind."""
    files = (kind / "__init__.py", kind / "declaration.py", kind / "reading.py", kind / "codec.py")
    trees = [ast.parse(one.read_text(encoding="utf-8")) for one in files if one.is_file()]
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    return {one.name for one in classes if not one.name.startswith("_")}


def named_in(text: str) -> Iterator[tuple[str, str]]:
    """(module, name) of each import of a file, wherever it stands."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, one.name) for one in node.names)
        elif isinstance(node, ast.Import):
            yield from ((one.name, "") for one in node.names)


def strangers(file: str, text: str) -> list[str]:
    """The imports of a file by which it knows a kind that it should not know."""
    found, imported = [], list(named_in(text))
    for kind in KINDS:
        inside = (HOUSE / file).is_relative_to(kind) or BESIDE.get(file) == kind.name
        home = next((one.name for one in KINDS if (HOUSE / file).is_relative_to(one)), "")
        if inside or file in MAY_NAME or (home, kind.name) in NESTED:
            continue
        place, names = module_of(kind), declared_in(kind)
        for module, name in imported:
            public = module in ("lodestream", "lodestream.sources", "lodestream.sources.codecs") and name in names
            private = f"{module}.{name}".startswith(f"{place}.") or module == place
            if private or (public and not file.startswith(USERS)):
                found.append(f"{file}: {module} {name}")
    return found


def test_nothing_outside_its_folder_names_a_kind() -> None:
    assert len(KINDS) == 9
    found = [one for file in modules() for one in strangers(file.relative_to(HOUSE).as_posix(), file.read_text())]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "from lodestream import Kafka",
        "from lodestream.sources import Files",
        "from lodestream.sources.kafka.reading import KafkaSource",
        "from lodestream.sources.stream import Stream",
        "import lodestream.sources.files.rows",
        "def late():\n    from lodestream.sources.codecs.json.codec import JsonCodec",
        "from lodestream.sources.codecs import Avro",
    ],
)
def test_a_room_that_names_a_kind_is_noticed(line: str) -> None:
    assert strangers("engine/status.py", line) != []
    assert strangers("flows/judging/ordering.py", line) != []
    assert strangers("testing/sandbox.py", line) != []


def test_a_declaration_that_nobody_reads_says_what_is_missing() -> None:
    @dataclass(frozen=True)
    class Pigeons(SourceDeclaration):
        ddl = "value BINARY"

        def describe(self) -> str:
            return "pigeons"

    with pytest.raises(DeclarationError, match="nothing reads pigeons") as caught:
        kind_of(Pigeons())
    assert "register_source(Pigeons" in str(caught.value)


def test_a_decoder_that_nobody_registered_says_what_is_missing() -> None:
    class Runes(DecoderDeclaration):
        pass

    with pytest.raises(DeclarationError, match=r"register_codec\(Runes"):
        codec_for(Runes(), "id bigint")


def test_a_source_says_its_columns_and_is_read_in_one_way() -> None:
    class Nameless(SourceDeclaration):
        def describe(self) -> str:
            return "nameless"

    with pytest.raises(DeclarationError, match="`open` or by `pull`"):
        register_source(Nameless)
    with pytest.raises(DeclarationError, match="says no columns"):
        register_source(Nameless, open=lambda _declared, _opening: None)  # type: ignore[arg-type,return-value]


def test_a_class_that_extends_a_source_is_read_as_it_is() -> None:
    class Topics(Kafka):
        pass

    assert kind_of(Topics("orders")) is kind_of(Kafka("orders"))


def test_rows_are_located_by_the_columns_they_have() -> None:
    broker = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
    files = ("value", "file", "row", "modified", "size")
    assert located_by(broker) == Kafka.coordinates
    assert located_by(files) == Coordinates(
        ("file", "row"), arrival="modified", about=("modified", "size"), records="row > 0"
    )
    assert located_by(("file", "row")) is None  # a row of another table
    assert identity_in(broker) == ("topic", "partition", "offset", "timestamp")
    assert (arrival_in(broker), arrival_in(files), arrival_in(("id",))) == ("timestamp", "modified", None)
    assert marks_in(broker) is None
    assert marks_in(files) == located_by(files)
