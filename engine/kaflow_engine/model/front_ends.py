"""The front ends there are, in the order in which their pipelines become known to each other."""

from kaflow_engine.model.dbt.front_end import DbtModels
from kaflow_engine.model.lenses.front_end import LensesProcessors
from kaflow_engine.model.pipelines.contract import FrontEnd
from kaflow_engine.model.pipelines.front_end import PipelineFiles

DEFAULT: FrontEnd = PipelineFiles()
"""Of a file that is named and that no front end knows: it says what is missing."""

FRONT_ENDS: tuple[FrontEnd, ...] = (DEFAULT, LensesProcessors(), DbtModels())
