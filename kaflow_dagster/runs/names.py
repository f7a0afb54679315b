"""Tags by which runs are found again, and names that Dagster takes."""

import re
from hashlib import sha256

PIPELINE = "kaflow/pipeline"
"""On runs of streams: of which pipeline, or group of pipelines."""
VERSION = "kaflow/version"
"""On runs of streams: of the plan that they run."""
STATE = "kaflow/state"
"""On runs of a stream of one pipeline: its stable id, which outlives a new name."""
DRAIN = "kaflow/drain"
"""On runs that should finish their batch and end: why."""
PROCESS = "kaflow/process"
"""On runs of streams: who does the work."""


def dagster_name(kind: str, pipeline: str) -> str:
    """Return a name for a job, an op or a sensor of a pipeline.

    >>> dagster_name("stream", "user_enrichment")
    'stream__user_enrichment'
    >>> dagster_name("stream", "a.b") == dagster_name("stream", "a-b")
    False
    """
    plain = re.sub(r"\W", "_", pipeline, flags=re.ASCII)
    other = "" if plain == pipeline else f"_{sha256(pipeline.encode()).hexdigest()[:6]}"
    return f"{kind}__{plain}{other}"
