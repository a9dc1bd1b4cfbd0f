"""Which source of a SELECT a name can belong to: the one rule that the planner and the check of a query share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from sqlglot import exp

# A source as names see it: its alias, the table it reads (None for a subquery), and its columns, all in lower case.
Readable = tuple[str, str | None, Collection[str]]


def holders(names: Sequence[str], readable: Iterable[Readable]) -> list[tuple[str, int]]:
    """The sources that a dotted name can belong to, each with the number of leading parts that name the column.

    `trips.fare` and `silver.trips.fare` before `fare`: what follows the column are fields of a struct.
    """
    readable = list(readable)
    qualified = [
        (alias, 2) for alias, _, columns in readable if names[0] == alias and names[1:2] and names[1] in columns
    ]
    if not qualified and len(names) > 2:
        qualified = [
            (alias, 3) for alias, table, columns in readable if ".".join(names[:2]) == table and names[2] in columns
        ]
    return qualified or [(alias, 1) for alias, _, columns in readable if names[0] in columns]


def places(select: exp.Select) -> list[tuple[exp.Expr, exp.Join | None]]:
    """What FROM and the joins read, in their order."""
    first = select.args.get("from_")
    joined = [(join.this, join) for join in select.args.get("joins") or []]
    return [(first.this, None), *joined] if first is not None else joined


def nested(select: exp.Select) -> Iterator[exp.Expr]:
    """The queries inside the expressions of a SELECT: IN (SELECT ...), EXISTS, scalar subqueries."""
    apart = {id(node) for node, _ in places(select)} | {id(select.args.get("with_"))}
    stack = [child for child in select.iter_expressions() if id(child) not in apart]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Query) and id(node) not in apart:
            yield node
        elif id(node) not in apart:
            stack += node.iter_expressions()


def is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))
