"""The process that Spark forks its Python workers from, with the engine loaded already.

Spark's own daemon loads nothing, because it cannot know what starts threads; each of its workers
then loads all that tasks need. What is loaded here starts none that a fork would miss.
`spark.python.daemon.module` names it.
"""

import os
from importlib import import_module

from pyspark.daemon import manager

WANTED = (
    "pyspark.worker",
    "kaflow_engine.runtime.jobs.jobs",
    "kaflow_engine.runtime.tasks.level_task",
    "kaflow_engine.runtime.tasks.snapshot_task",
)
"""What each worker would load."""


def main() -> None:
    """Load what workers need, and fork them as Spark asks for them."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy would start threads at once
    for name in WANTED:
        import_module(name)
    from kaflow_engine.runtime.tasks.memory import settle_in  # it loads NumPy

    settle_in()
    manager()


if __name__ == "__main__":
    main()
