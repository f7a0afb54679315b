"""The functions of the engine itself: which there are, and where each of them is."""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

from kaflow_engine.errors import ModelError
from kaflow_engine.extras import EXTRAS

BUILT_IN: Mapping[str, str] = {
    "clickhouse_tuples": "kaflow_engine.duck.functions.encodings",
    "conv_base": "kaflow_engine.duck.functions.encodings",
    "decimal_abs": "kaflow_engine.duck.functions.decimals",
    "decimal_add": "kaflow_engine.duck.functions.decimals",
    "decimal_div": "kaflow_engine.duck.functions.decimals",
    "decimal_mod": "kaflow_engine.duck.functions.decimals",
    "decimal_mul": "kaflow_engine.duck.functions.decimals",
    "decimal_neg": "kaflow_engine.duck.functions.decimals",
    "decimal_of": "kaflow_engine.duck.functions.decimals",
    "decimal_round": "kaflow_engine.duck.functions.decimals",
    "decimal_sub": "kaflow_engine.duck.functions.decimals",
    "decimal_text": "kaflow_engine.duck.functions.decimals",
    "from_base58": "kaflow_engine.duck.functions.encodings",
    "keccak256": "kaflow_engine.duck.functions.hashes",
    "reverse_bytes": "kaflow_engine.duck.functions.encodings",
    "to_base58": "kaflow_engine.duck.functions.encodings",
    "try_decimal_of": "kaflow_engine.duck.functions.decimals",
    "xxhash": "kaflow_engine.duck.functions.hashes",
}
"""By what SQL calls them: their module."""


def module_of(name: str) -> ModuleType:
    """Return the module of a function, imported on its first use.

    Args:
        name: One of `BUILT_IN`.

    Raises:
        ModelError: An optional part that it needs is not installed.
    """
    try:
        return import_module(BUILT_IN[name])
    except ImportError as error:
        raise ModelError(
            f"the function '{name}' needs the packages pycryptodome and xxhash, which are not "
            "installed",
            hint=EXTRAS["hashing"].install,
        ) from error
