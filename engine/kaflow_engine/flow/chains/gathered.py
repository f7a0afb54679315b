"""What gathers the rows that arrive at a projection, apart from what only transforms them."""

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import gathered_before
from kaflow_engine.flow.operators import Gathers, Project
from kaflow_engine.flow.transforms import Transform


def groups_before(flow: Flow, project: Project) -> tuple[Gathers, ...]:
    """Return what gathered the rows that arrive at a projection, save for what only transforms
    them."""
    found = gathered_before(flow, project)
    return tuple(each for each in found if not isinstance(each, Transform))
