"""The modules of a project's own folder, read as text: what each top-level name is bound by. Nothing is imported."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lodestream.pipeline.code_names import root_name

_FOREIGN = ("site-packages", "dist-packages", ".venv", "venv", "node_modules")
_MARKER = "lode.toml"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True)
class OwnModule:
    """One file of the project. `name` is its path from the project's folder: the same on every machine."""

    file: Path
    name: str

    @cached_property
    def text(self) -> str:
        return self.file.read_text(encoding="utf-8-sig")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    def source(self, node: ast.AST) -> str:
        """The text of a node: of a statement its lines, decorators included."""
        if not isinstance(node, ast.stmt):
            return ast.get_source_segment(self.text, node) or ""
        above = [one.lineno for one in getattr(node, "decorator_list", ())]
        lines = self.text.splitlines()[min([node.lineno, *above]) - 1 : node.end_lineno]
        return "\n".join(line.rstrip() for line in lines)

    def binding(self, name: str) -> list[ast.stmt]:
        """The top-level statements that give a name its value or change it."""
        return self._bindings.get(name, [])

    def stars(self) -> Iterator[ast.ImportFrom]:
        for one in self.tree.body:
            if isinstance(one, ast.ImportFrom) and one.names[0].name == "*":
                yield one

    @cached_property
    def _bindings(self) -> dict[str, list[ast.stmt]]:
        found: dict[str, list[ast.stmt]] = {}
        for statement in self.tree.body:
            for name in dict.fromkeys(_bound(statement)):
                found.setdefault(name, []).append(statement)
        return found


class OwnModules:
    """Finds modules by file and by the name they are imported by; None for what is not the project's own."""

    def __init__(self, first: Path) -> None:
        self.root = _root(first)
        self._beside = first.parent
        self._read: dict[Path, OwnModule | None] = {}

    def at(self, file: Path) -> OwnModule | None:
        path = file.resolve()
        if path not in self._read:
            self._read[path] = self._open(path)
        return self._read[path]

    def named(self, dotted: str, level: int, importer: OwnModule) -> OwnModule | None:
        """The module of `import dotted`, or of `from ..dotted import` with its dots counted by `level`."""
        parts = [part for part in dotted.split(".") if part]
        bases = [importer.file.parents[level - 1]] if level else self._bases()
        for base in bases:
            place = base.joinpath(*parts)
            for file in (place / "__init__.py", place.with_suffix(".py")) if parts else (place / "__init__.py",):
                if found := self.at(file):
                    return found
        return None

    def inside(self, package: OwnModule, name: str) -> OwnModule | None:
        """A module of a package."""
        return self.named(name, 1, package) if package.file.name == "__init__.py" else None

    def _bases(self) -> Sequence[Path]:
        listed = [Path(one).resolve() for one in sys.path if one]
        within = [one for one in listed if one.is_relative_to(self.root)]
        return list(dict.fromkeys([self._beside, *within, self.root]))

    def _open(self, path: Path) -> OwnModule | None:
        if path.suffix != ".py" or not path.is_relative_to(self.root):
            return None
        relative = path.relative_to(self.root)
        if any(part in _FOREIGN for part in relative.parts) or not path.is_file():
            return None
        found = OwnModule(path, relative.as_posix())
        try:
            found.tree  # noqa: B018 (a file that is no Python cannot be followed)
        except (SyntaxError, ValueError, OSError):
            return None
        return found


def _root(first: Path) -> Path:
    """The folder with lode.toml; without one, the folder that the file's outermost package lies in."""
    for folder in first.parents:
        if (folder / _MARKER).is_file():
            return folder
    folder = first.parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names of module scope that a statement binds or changes in place."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    for node in _in_scope(statement):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((one.asname or one.name).partition(".")[0] for one in names)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
                yield root_name(node) or ""
            case ast.Expr(value=ast.Call() as call):
                # RATES.update(...) and fill(RATES) change what RATES is.
                yield from filter(None, map(root_name, (call.func, *call.args)))


def _in_scope(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement that run in its own scope: not the bodies of functions and classes."""
    yield node
    if not isinstance(node, _SCOPES):
        for child in ast.iter_child_nodes(node):
            yield from _in_scope(child)
