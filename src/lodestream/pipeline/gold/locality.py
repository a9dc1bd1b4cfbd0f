"""Which output columns tell the rows apart so well that a change of one input row touches only its own values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from lodestream.pipeline.gold.alike import all_alike, keeps_equal
from lodestream.pipeline.gold.functions import called_in, generates, has_aggregate, names_its_fields, session_window
from lodestream.pipeline.gold.kinds import Kinds
from lodestream.pipeline.gold.pieces import Piece
from lodestream.pipeline.gold.plan import NotProvableError
from lodestream.pipeline.gold.scopes import Scope


def local_columns(scope: Scope, kinds: Kinds) -> dict[str, Piece]:
    """Output columns k such that the rows with k = v depend only on the input rows with the same value.

    That holds for functions of the group keys, and below window functions for functions of what they all
    partition by. Sessions do not qualify: a new row can merge two of them. Nor do functions that tell equal keys
    apart: 0.0 and -0.0 are one group.
    """
    if scope.limited:
        raise NotProvableError("LIMIT depends on every row")
    items = {item.name.lower(): item.piece for item in scope.items}
    return {name: piece for name, piece in items.items() if movable(piece) and is_local(scope, piece, kinds)}


def is_local(scope: Scope, piece: Piece, kinds: Kinds, *, united: bool = False) -> bool:
    """Whether rows that this SELECT takes for one have one value of the expression; `united` by a UNION above it."""
    leaves = [*_leaves(scope), *([[item.piece.tree for item in scope.items]] if united else [])]

    def alike(leaf: exp.Expr) -> bool:
        return all_alike(scope, leaf, kinds)

    return all(_built_from(piece.tree, known, alike) for known in leaves)


def movable(piece: Piece) -> bool:
    """Whether the expression means the same in another statement that reads the same row."""
    tree = piece.tree
    if tree.find(exp.Column) is None or tree.find(exp.Query, exp.Window) is not None:
        return False
    return not (has_aggregate(tree) or session_window(tree) or generates(tree) or names_its_fields(called_in(tree)))


def _leaves(scope: Scope) -> list[Sequence[exp.Expr]]:
    """Each is a set of expressions that a local column must be built from."""
    partitions: list[Sequence[exp.Expr]] = [tuple(window.args.get("partition_by") or ()) for window in scope.windows]
    return partitions if scope.group is None else [[piece.tree for piece in scope.group], *partitions]


def _built_from(
    tree: exp.Expr, leaves: Sequence[exp.Expr], alike: Callable[[exp.Expr], bool], *, equal: bool = True
) -> bool:
    """True when every column in the expression sits inside one of the leaves, and equal leaves give equal values."""
    if tree in leaves:
        return equal or alike(tree)
    if isinstance(tree, exp.Column):
        return False
    equal = equal and keeps_equal(tree)
    return all(_built_from(child, leaves, alike, equal=equal) for child in tree.iter_expressions())
