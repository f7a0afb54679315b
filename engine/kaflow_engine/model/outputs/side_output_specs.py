"""What a pipeline file says of side outputs, which see the rows of an output before they leave."""

from pydantic import Field

from kaflow_engine.model.plugin_options import Option, PluginName
from kaflow_engine.model.spec import Spec


class SideOutputSpec(Spec):
    """A kind of side output that an installed package offers."""

    type: PluginName
    """`<namespace>.<name>`: an entry point of the group `kaflow.side_outputs`."""
    options: dict[str, Option] = Field(default={})
    """What the plugin takes; it says itself what is right."""
