"""The front ends there are, in the order in which their pipelines become known to each other."""

from pathlib import Path

from kaflow_engine.model.dbt.front_end import DbtModels
from kaflow_engine.model.lenses.front_end import LensesProcessors
from kaflow_engine.model.pipelines.contract import FrontEnd
from kaflow_engine.model.pipelines.front_end import PipelineFiles
from kaflow_engine.model.sqlflow.front_end import SqlflowFiles
from kaflow_engine.model.streamling.front_end import StreamlingPipelines

DEFAULT: FrontEnd = PipelineFiles()
"""Of a file that is named and that no front end knows: it says what is missing."""

FRONT_ENDS: tuple[FrontEnd, ...] = (
    DEFAULT,
    StreamlingPipelines(),
    LensesProcessors(),
    SqlflowFiles(),
    DbtModels(),
)


def front_end_of(file: str) -> FrontEnd:
    """Return the front end with the longest ending that the name of a file has.

    >>> front_end_of("pipelines/orders.processor.yaml").name
    'Lenses processor'
    """
    name = Path(file).name
    ranked = [
        (max((len(end) for end in each.endings if name.endswith(end)), default=0), each)
        for each in FRONT_ENDS
    ]
    length, found = max(ranked, key=lambda pair: pair[0])
    return found if length else DEFAULT
