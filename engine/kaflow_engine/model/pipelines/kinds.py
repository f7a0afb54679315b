"""Recognises a YAML file by its keys: configuration, pipeline, or something else."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.config import Config
from kaflow_engine.model.files.shapes import file_keys, inside
from kaflow_engine.model.files.tree import Entries, Node, Scalar
from kaflow_engine.model.spec import Spec
from kaflow_engine.model.specs import PipelineSpec

Kind = Literal["configuration", "pipeline"]


@dataclass(frozen=True, slots=True)
class _Sign:
    """A key that only one kind of file has."""

    kind: Kind
    key: str
    at: Location


def kind_of(root: Node) -> Kind | None:
    """Return what a file is about; None: no key says it.

    Raises:
        ModelError: It has keys of both.
    """
    signs = list(_signs(root, Config, PipelineSpec))
    of_config = [sign for sign in signs if sign.kind == "configuration"]
    of_pipeline = [sign for sign in signs if sign.kind == "pipeline"]
    if of_config and of_pipeline:
        keys = ", ".join(sign.key for sign in of_config)
        raise ModelError(
            f"'{of_config[0].key}' belongs to the configuration, and '{of_pipeline[0].key}' to a "
            "pipeline",
            of_config[0].at,
            f"move {keys} to a file of its own, such as kaflow.yaml",
        )
    return signs[0].kind if signs else None


def holds_configuration(root: Node) -> bool:
    """Tell whether a file holds configuration, and no pipeline."""
    return {sign.kind for sign in _signs(root, Config, PipelineSpec)} == {"configuration"}


def _signs(
    node: Node, config: type[Spec], pipeline: type[Spec], above: str = ""
) -> Iterator[_Sign]:
    """Find the keys that tell the two apart, also below keys that both have, such as `state`."""
    of_config, of_pipeline = file_keys(config), file_keys(pipeline)
    for entry in node.entries if isinstance(node, Entries) else ():
        here, there = of_config.get(entry.key), of_pipeline.get(entry.key)
        name = f"{above}{entry.key}"
        if here is None and there is None:
            continue
        if here is None:
            yield _Sign("pipeline", name, entry.at)
            continue
        below = inside(config.model_fields[here[1]].annotation).spec
        if there is None:
            is_text = isinstance(entry.value, Scalar)
            if below is None or not is_text:  # `sql: SELECT …` is no section
                yield _Sign("configuration", name, entry.at)
            continue
        beside = inside(pipeline.model_fields[there[1]].annotation).spec
        if below is not None and beside is not None:
            yield from _signs(entry.value, below, beside, f"{name}.")
