"""A code location: the components of the project in the working directory."""

from pathlib import Path

import dagster as dg


@dg.definitions
def defs() -> dg.Definitions:
    """Return all that the project's `defs_module` holds; see `[tool.dg.project]`."""
    return dg.load_from_defs_folder(path_within_project=Path.cwd())
