"""Where a Gold table reaches one table by two ways, as the graph shows it."""

from __future__ import annotations

from lodestream.names import feed_of
from lodestream.pipeline import Graph
from lodestream.pipeline.ways import Ways
from lodestream.planning.keyed import keyed


def ways_of(graph: Graph, name: str) -> Ways:
    inputs = graph.inputs(name)
    edges = {one: followed(graph, one) for one in graph.upstream(name)}
    leaders = {one: found for one in inputs if (found := _leaders(graph, name, one))}
    homes = {one: feed_of(one) for one in edges if keyed(graph, one)}
    return Ways(inputs, edges, homes, leaders)


def followed(graph: Graph, name: str) -> tuple[str, ...]:
    """The inputs whose state a table always shows. Silver looks other things up once, and a reload follows no table."""
    return graph.inputs(name) if graph[name].tier == "gold" else (*graph.streams(name), *graph.corrections(name))


def _leaders(graph: Graph, name: str, shared: str) -> tuple[str, ...]:
    """Other Gold readers of the same input that meet this table further down and run more often than it does."""
    below = set(graph.downstream(name))
    others = (one for one in graph.readers(shared) if one != name and graph[one].tier == "gold")
    return tuple(one for one in others if below & set(graph.downstream(one)) and _rank(graph, one) < _rank(graph, name))


def _rank(graph: Graph, name: str) -> tuple[float, str]:
    return graph[name].every or 0.0, name
