"""Protobuf schemas: .proto sources compiled, descriptor sets loaded, message types found by name."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lodestream.contracts.types import Type, decimal
from lodestream.errors import DeclarationError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Bool", "Int32", "Int64", "UInt32", "UInt64", "Float", "Double", "String", "Bytes")
)


def compile_sources(sources: dict[str, str], main: str, folder: Path | None = None) -> bytes:
    """A serialised FileDescriptorSet of `main` and all it imports. Raises ValueError with the compiler's words."""
    try:
        from grpc_tools import protoc
    except ImportError:
        raise DeclarationError(
            "Protobuf sources cannot be compiled here",
            why="the compiler is not installed",
            fix="pip install 'lodestream[registry]', or give a compiled descriptor set",
        ) from None
    with tempfile.TemporaryDirectory() as work:
        for name, text in sources.items():
            target = (Path(work) / name).resolve()
            if not target.is_relative_to(Path(work).resolve()):
                raise ValueError(f"{name!r} is not a file name")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        out = Path(work) / "out.desc"
        known = Path(protoc.__file__).parent / "_proto"
        paths = [f"-I{path}" for path in (work, folder, known) if path is not None]
        if protoc.main(["protoc", *paths, "--include_imports", f"--descriptor_set_out={out}", main]) != 0:
            raise ValueError(f"{main} does not compile")
        return out.read_bytes()


def last_file(descriptor: bytes) -> Any:
    """The file that the set was compiled for: it comes after what it imports."""
    pool, names = _pool(descriptor)
    return pool.FindFileByName(names[-1])


def message_type(descriptor: bytes, message: str) -> Descriptor:
    found: Descriptor = _pool(descriptor)[0].FindMessageTypeByName(message)
    return found


def indexes_of(kind: Descriptor) -> tuple[int, ...]:
    """Where the type stands in its file: its place among its siblings, outermost first."""
    if kind.containing_type is None:
        return (list(kind.file.message_types_by_name).index(kind.name),)
    inside = [sibling.name for sibling in kind.containing_type.nested_types]
    return (*indexes_of(kind.containing_type), inside.index(kind.name))


@cache
def _pool(descriptor: bytes) -> tuple[Any, tuple[str, ...]]:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool

    pool = DescriptorPool()
    files = FileDescriptorSet.FromString(descriptor).file
    for file in files:
        pool.Add(file)
    return pool, tuple(file.name for file in files)


def scalar_type(found: FieldDescriptor, kinds: dict[str, str]) -> Type:
    """The column type of a plain field; unsigned 64-bit numbers need twenty digits."""
    from google.protobuf.descriptor import FieldDescriptor

    names = {getattr(FieldDescriptor, name): name for name in dir(FieldDescriptor) if name.startswith("TYPE_")}
    name = names[found.type]
    return decimal(20, 0) if name in ("TYPE_UINT64", "TYPE_FIXED64") else Type(kinds[name])
