"""Which files say what is served."""

import re
from pathlib import Path

from kaflow_engine.errors import ModelError
from kaflow_engine.model.files.yaml_file import read_text

_SERVE = re.compile(r"^serve:", re.M)
_PIPELINE = re.compile(r"^pipeline:", re.M)


def is_serve_file(text: str) -> bool:
    """Tell by its text whether a file says what is served."""
    return _SERVE.search(text) is not None and _PIPELINE.search(text) is None


def serves(path: Path) -> bool:
    """Tell whether a file says what is served; one that cannot be read does not."""
    try:
        return is_serve_file(read_text(path))
    except ModelError:
        return False
