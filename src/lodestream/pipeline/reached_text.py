"""The text that a piece of code reaches in the project's own modules, name by name. Nothing is imported or run."""

from __future__ import annotations

import ast

from lodestream.pipeline.code_names import Used, attributes, free_names, root_name
from lodestream.pipeline.own_modules import OwnModule, OwnModules

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


class ReachedText:
    """The texts found so far, by where they stand: each is followed once, so circles end."""

    def __init__(self, modules: OwnModules) -> None:
        self.modules = modules
        self.texts: dict[str, str] = {}

    def follow(self, module: OwnModule, node: ast.AST, *, besides: frozenset[str] = frozenset()) -> None:
        """What code uses: names of its module, and what it imports itself."""
        asked = attributes(node)
        source = module.text if isinstance(node, ast.Module) else module.source(node)
        for name in sorted(free_names(source) - besides):
            self.name(module, name, asked.get(name))
        for inner in ast.walk(node):
            if isinstance(inner, _IMPORTS):
                self._import(module, inner, None, None)

    def name(self, module: OwnModule, name: str, used: Used = None) -> None:
        """A top-level name of a module. `used` are the attributes that are asked of it."""
        statements = module.binding(name)
        for number, statement in enumerate(statements):
            if isinstance(statement, _IMPORTS):
                self._import(module, statement, name, used)
            elif not self._declares(module, statement):
                self._statement(module, statement, f"{module.name}:{name}:{number}")
        if not statements:
            for star in module.stars():
                origin = self._origin(module, star)
                if origin is not None:
                    self.name(origin, name, used)

    def _statement(self, module: OwnModule, statement: ast.stmt, place: str) -> None:
        if place not in self.texts:
            self.texts[place] = module.source(statement)
            self.follow(module, statement)

    def _import(self, module: OwnModule, node: ast.Import | ast.ImportFrom, name: str | None, used: Used) -> None:
        """What an import brings: as `name`, or as every name when it stands inside other code."""
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            if name not in (None, bound):
                continue
            if isinstance(node, ast.ImportFrom):
                self._from(module, node, alias.name, used)
            else:
                self._module(module, alias, used)

    def _module(self, importer: OwnModule, alias: ast.alias, used: Used) -> None:
        """`import a.b` binds `a`; where `a` is a folder without code, only `a.b` can be asked for names."""
        if alias.asname is None and (found := self.modules.named(alias.name.partition(".")[0], 0, importer)):
            self._asked(found, used)
            if "." not in alias.name or used is not None:
                return
        inner, steps = self.modules.named(alias.name, 0, importer), tuple(alias.name.split(".")[1:])
        if inner is None:
            return
        if alias.asname is None and used is not None:
            used = {chain[len(steps) :] for chain in used if chain[: len(steps)] == steps}
        self._asked(inner, used)

    def _from(self, module: OwnModule, node: ast.ImportFrom, name: str, used: Used) -> None:
        origin = self._origin(module, node)
        if origin is not None and name == "*":
            self._whole(origin)
        elif origin is not None and origin.binding(name):
            self.name(origin, name, used)
        elif inner := self.modules.named(f"{node.module or ''}.{name}", node.level, module):
            self._asked(inner, used)
        elif origin is not None:
            self.name(origin, name, used)

    def _origin(self, module: OwnModule, node: ast.ImportFrom) -> OwnModule | None:
        return self.modules.named(node.module or "", node.level, module)

    def _asked(self, module: OwnModule, used: Used) -> None:
        """The names that are asked of a module; all of it when it is handed on as a value."""
        if used is None or () in used:
            self._whole(module)
            return
        for first, *rest in sorted(used):
            further: Used = {tuple(rest)} if rest else None
            inner = None if module.binding(first) else self.modules.inside(module, first)
            if inner is not None:
                self._asked(inner, further)
            else:
                self.name(module, first, further)

    def _whole(self, module: OwnModule) -> None:
        if module.name not in self.texts:
            self.texts[module.name] = module.text
            self.follow(module, module.tree)

    def _declares(self, module: OwnModule, statement: ast.stmt) -> bool:
        """Whether a statement makes a pipeline or declares a table in one: that is not what the function does."""
        if isinstance(statement, _DEFINITIONS):
            return False
        value = getattr(statement, "value", None)
        if not isinstance(value, ast.Call):
            return False
        root = root_name(value)
        return _makes_pipeline(module, value) or (root is not None and self._is_pipeline(module, root))

    def _is_pipeline(self, module: OwnModule, name: str) -> bool:
        for one in module.binding(name):
            if isinstance(one, ast.ImportFrom):
                origin = self._origin(module, one)
                own = next((alias.name for alias in one.names if (alias.asname or alias.name) == name), None)
                if origin is not None and own is not None and origin is not module:
                    return self._is_pipeline(origin, own)
            elif isinstance(one, ast.Assign | ast.AnnAssign) and isinstance(one.value, ast.Call):
                return _makes_pipeline(module, one.value)
        return False


def _makes_pipeline(module: OwnModule, call: ast.Call) -> bool:
    """`Pipeline("taxi")` or `lodestream.Pipeline("taxi")`."""
    made = call.func
    if isinstance(made, ast.Attribute):
        return made.attr == "Pipeline" and isinstance(made.value, ast.Name) and _ours(module, made.value.id, None)
    return isinstance(made, ast.Name) and _ours(module, made.id, "Pipeline")


def _ours(module: OwnModule, name: str, imported: str | None) -> bool:
    for one in module.binding(name):
        if isinstance(one, ast.ImportFrom) and imported and (one.module or "").partition(".")[0] == "lodestream":
            return any((alias.asname or alias.name) == name and alias.name == imported for alias in one.names)
        if isinstance(one, ast.Import) and imported is None:
            return any(alias.name.partition(".")[0] == "lodestream" for alias in one.names)
    return False
