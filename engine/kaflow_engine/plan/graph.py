"""What reads what in a pipeline, as the text of a Mermaid diagram."""

from collections.abc import Iterator

from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.sql.pipeline import names_by_reader

_INPUT, _RELATION, _OUTPUT = ('[("', '")]'), ('["', '"]'), ('(["', '"])')
"""Shapes of nodes: a cylinder, a box, and a box with round ends."""


def graph(spec: PipelineSpec) -> list[str]:
    """Return the lines of a diagram: topics and sources, relations, and outputs.

    Raises:
        ModelError: A query cannot be parsed, or relations do not fit together.
    """
    relations, outputs = names_by_reader(spec)
    called = {name.lower(): name for name in spec.relations}
    every = {**relations, **{_output(name): read for name, read in outputs.items()}}
    nodes: dict[str, str] = {}
    edges: list[tuple[str, str]] = []
    left = [_output(name) for name in outputs]
    while left:
        reader = left.pop(0)
        for name in every[reader]:
            below = name.lower() if name.lower() in relations else name
            edges.append((below, reader))
            if below in relations and below not in nodes and below not in left:
                left.append(below)
            nodes.setdefault(below, called.get(below, name))
        nodes.setdefault(reader, reader)
    numbers = {name: f"n{number}" for number, name in enumerate(nodes)}
    return ["flowchart LR", *_nodes(nodes, numbers, every), *_edges(edges, numbers)]


def _output(target: str) -> str:
    """Return the key of an output, which is no name of a relation or topic."""
    return f"\0{target}"


def _nodes(
    nodes: dict[str, str], numbers: dict[str, str], readers: dict[str, tuple[str, ...]]
) -> Iterator[str]:
    for name, text in nodes.items():
        is_output = name.startswith("\0")
        before, behind = _OUTPUT if is_output else _RELATION if name in readers else _INPUT
        yield f"  {numbers[name]}{before}{text.removeprefix(chr(0))}{behind}"


def _edges(edges: list[tuple[str, str]], numbers: dict[str, str]) -> Iterator[str]:
    for below, reader in dict.fromkeys(edges):
        yield f"  {numbers[below]} --> {numbers[reader]}"
