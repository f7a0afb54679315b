"""The nodes of a pipeline: its relations, and its outputs; each is shown under its name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from kaflow_engine.errors import ModelError, UnknownName
from kaflow_engine.model.outputs.output_specs import ListedOutputSpec
from kaflow_engine.model.specs import PipelineSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What has rows of its own."""

    name: str
    kind: Literal["relation", "output"]
    target: str
    """What the sink is called that its rows go to, in the plan of the preview."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """A relation whose rows are not shown by themselves."""

    name: str
    why: ModelError


def output_nodes(spec: PipelineSpec) -> tuple[Node, ...]:
    """Return the outputs."""
    names = dict.fromkeys(write.target for write in spec.writes)
    return tuple(Node(name=name, kind="output", target=name) for name in names)


def relation_nodes(spec: PipelineSpec) -> tuple[Node, ...]:
    """Return the relations, save those that are an output of the same name."""
    written = {write.target for write in spec.writes if write.relation == write.target}
    return tuple(
        Node(name=name, kind="relation", target=f"kaflow.preview.{number}")
        for number, name in enumerate(spec.relations)
        if name not in written
    )


def named(spec: PipelineSpec, nodes: Sequence[Node], name: str | None) -> tuple[Node, ...]:
    """Return the nodes of a name, None: all.

    Raises:
        UnknownName: There is none; says the nearest.
    """
    if name is None:
        return tuple(nodes)
    found = tuple(node for node in nodes if node.name == name)
    if not found:
        raise UnknownName("node", name, [node.name for node in nodes], spec.at)
    return found


def with_relations(spec: PipelineSpec, nodes: Sequence[Node]) -> PipelineSpec:
    """Return a pipeline that also writes the rows of relations, each to an output of its own."""
    # a topic takes all kinds of rows
    shown = (
        ListedOutputSpec.model_validate({"topic": node.target, "from": node.name})
        for node in nodes
        if node.kind == "relation"
    )
    return spec.model_copy(update={"outputs": (*spec.outputs, *shown)})


def apart(
    spec: PipelineSpec, nodes: Sequence[Node], check: Callable[[PipelineSpec], object]
) -> tuple[tuple[Node, ...], tuple[Hidden, ...]]:
    """Return the nodes that can be shown beside each other, and the relations that cannot.

    Args:
        spec: What the author wrote, which is sound.
        nodes: Of it.
        check: Raises ModelError of a pipeline that cannot be planned.
    """
    shown: list[Node] = []
    hidden: list[Hidden] = []
    for node in nodes:
        try:
            if node.kind == "relation":
                check(with_relations(spec, [*shown, node]))
            shown.append(node)
        except ModelError as error:
            hidden.append(Hidden(name=node.name, why=error))
    return tuple(shown), tuple(hidden)
