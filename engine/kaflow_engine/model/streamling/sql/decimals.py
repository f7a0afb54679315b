"""Functions of Streamling for decimals of any number of digits, which are functions of ours."""

from collections.abc import Mapping

_SIGNS = {"eq": "=", "neq": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_ANY = "1000, 500"
"""Digits, and those behind the point, of a number of which neither is said."""


def _of_several(name: str) -> dict[int, str]:
    return {
        count: f"{name}({', '.join(f'{{{number}}}' for number in range(count))})"
        for count in range(2, 9)
    }


DECIMALS: Mapping[str, Mapping[int, str]] = {
    "decimal_arb": {
        1: f"decimal_of(CAST({{0}} AS VARCHAR), {_ANY})",
        3: "decimal_of(CAST({0} AS VARCHAR), {1}, {2})",
    },
    "to_decimal_arb_from_string": {
        3: "decimal_of({0}, {1}, {2})",
        4: "decimal_of({0}, {1}, {2})",
    },
    "try_to_decimal_arb_from_string": {
        3: "try_decimal_of({0}, {1}, {2})",
        4: "try_decimal_of({0}, {1}, {2})",
    },
    "to_decimal_arb_from_int": {3: "decimal_of(CAST({0} AS VARCHAR), {1}, {2})"},
    "to_decimal_arb_from_decimal128": {3: "decimal_of(CAST({0} AS VARCHAR), {1}, {2})"},
    "decimal_arb_to_string": {1: "decimal_text({0})"},
    "decimal_arb_to_sort_key": {1: "({0})"},
    "decimal_arb_rescale": {3: "decimal_of(decimal_text({0}), {1}, {2})"},
    "decimal_arb_round": {2: "decimal_round({0}, {1})"},
    "decimal_arb_neg": {1: "decimal_neg({0})"},
    "decimal_arb_abs": {1: "decimal_abs({0})"},
    "decimal_arb_greatest": _of_several("greatest"),
    "decimal_arb_least": _of_several("least"),
    **{
        f"decimal_arb_{name}": {2: f"decimal_{name}({{0}}, {{1}})"}
        for name in ("add", "sub", "mul", "div", "mod")
    },
    **{f"decimal_arb_{name}": {2: f"(({{0}}) {sign} ({{1}}))"} for name, sign in _SIGNS.items()},
}
"""By name: the SQL for each number of arguments, as `FUNCTIONS` has it."""
