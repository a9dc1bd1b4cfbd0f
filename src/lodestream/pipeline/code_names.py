"""Which names a piece of Python takes from around it, read from its text."""

from __future__ import annotations

import ast
import symtable
import textwrap
from collections.abc import Iterator
from types import CodeType

# By name, the chains of attributes that are asked of it; None when it is also used bare.
Used = set[tuple[str, ...]] | None


def nodes_of(tree: ast.Module, code: CodeType) -> list[ast.stmt | ast.expr]:
    """The definition that a function was compiled from. Lambdas of one line cannot be told apart: all of them."""
    line = code.co_firstlineno
    if code.co_name == "<lambda>":
        return [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == line]
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name == code.co_name
        and min([node.lineno, *(one.lineno for one in node.decorator_list)]) == line
    ]


def free_names(source: str) -> set[str]:
    """The names that code takes from the module it stands in: neither its parameters nor what it sets itself."""
    text = textwrap.dedent(source)
    try:
        table = symtable.symtable(text, "<reached>", "exec")
    except SyntaxError:  # an expression over several lines
        table = symtable.symtable(f"({text}\n)", "<reached>", "exec")
    return set(_globals_of(table))


def attributes(node: ast.AST) -> dict[str, Used]:
    found: dict[str, Used] = {}
    for name, *rest in _chains(node):
        so_far = found.setdefault(name, set())
        if not rest:
            found[name] = None
        elif so_far is not None:
            so_far.add(tuple(rest))
    return found


def root_name(node: ast.AST) -> str | None:
    """`rates` of `rates.table["x"].get(1)`."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Starred):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _globals_of(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (table.get_type() == "module" or symbol.is_global()):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _globals_of(child)


def _chains(node: ast.AST) -> Iterator[list[str]]:
    asked: list[str] = []
    while isinstance(node, ast.Attribute):
        asked.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        yield [node.id, *reversed(asked)]
        return
    for child in ast.iter_child_nodes(node):
        yield from _chains(child)
