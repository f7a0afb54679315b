"""What the nodes of a Streamling file have in common."""

import re
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field

from kaflow_engine.model.configuration.streamling.names import plugin_id
from kaflow_engine.model.names import Filled, refuse, split_names
from kaflow_engine.model.plugin_options import is_plugin_name
from kaflow_engine.model.spec import Spec

_MOST_LABELS, _LONGEST_LABEL = 20, 256
_RESERVED = ("id", "topology_node_type", "operator_type", "service_instance_id")

Columns = Annotated[tuple[Filled, ...], BeforeValidator(split_names)]
"""One column, several of them by commas, or a list."""


def _labels(labels: dict[str, str]) -> dict[str, str]:
    if len(labels) > _MOST_LABELS:
        raise refuse(f"has {len(labels)} labels", f"a node has at most {_MOST_LABELS} of them")
    for name, value in labels.items():
        if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name) or name.startswith("__"):
            hint = "use letters, digits and '_', no digit first, and not '__'"
            raise refuse(f"cannot have a label called '{name}'", hint)
        if name in _RESERVED:
            hint = f"rename it: each metric has {', '.join(_RESERVED)} of its own"
            raise refuse(f"cannot set the label '{name}'", hint)
        if len(value.encode()) > _LONGEST_LABEL:
            raise refuse(f"has a value of '{name}' that is too long", "256 bytes at most")
        if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", value):
            raise refuse(f"has a control character in '{name}'", "remove it; a tab may stay")
    return labels


class TelemetrySpec(Spec):
    """What is said of the metrics of a node."""

    labels: Annotated[dict[str, str], AfterValidator(_labels)] = Field(default={})


def _id(text: str) -> str:
    if not is_plugin_name(plugin_id(text)):
        raise refuse("{value} is not the id of a plugin", "write <namespace>.<name>, as in acme.x")
    return text


class NodeSpec(Spec):
    """A node of the topology."""

    type: Any
    primary_key: Columns = ()
    telemetry: TelemetrySpec = TelemetrySpec()
    parallelism: int | None = Field(default=None, gt=0)
    """Accepted and without effect: Spark's cores share the work."""
    batch_size: int | None = Field(default=None, gt=0)
    """Accepted and without effect, but for requests: batches are those of the run."""
    batch_flush_interval: Filled | None = None


class ReadingSpec(NodeSpec):
    """A node that reads another one."""

    from_: Filled = Field(alias="from")


class PluginNodeSpec(NodeSpec):
    """What a package offers."""

    mark: ClassVar[str] = ""
    """Each type that is no kind of node is the id of a plugin."""
    type: Annotated[str, AfterValidator(_id)]
    options: dict[str, str | None] = Field(default={})


class PluginReadingSpec(PluginNodeSpec, ReadingSpec):
    """What a package offers, and what reads another node."""
