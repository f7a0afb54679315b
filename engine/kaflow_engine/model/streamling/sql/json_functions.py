"""Functions over JSON, with what they give for a text that is none, and where nothing is."""

from collections.abc import Mapping

_JSON = "CASE WHEN json_valid({0}) THEN {0} END"
_KIND = f"json_type({_JSON}, {{1}})"
_NESTED = f"{_KIND} IN ('OBJECT', 'ARRAY')"
_NESTED_TEXT = f"CASE WHEN {_NESTED} THEN CAST(json_extract({{0}}, {{1}}) AS VARCHAR) END"
_SCALAR = f"CASE WHEN NOT ({_NESTED}) THEN json_extract_string({{0}}, {{1}}) END"
_EXISTS = f"json_extract_string({_JSON}, {{1}}) IS NOT NULL"
_WRAPPED = (
    f"CASE WHEN upper({{3}}) = 'WITHOUT ARRAY' THEN {_NESTED_TEXT} "
    f"WHEN upper({{3}}) = 'WITH CONDITIONAL ARRAY' AND {_NESTED} THEN {_NESTED_TEXT} "
    f"WHEN {_KIND} IS NOT NULL "
    "THEN concat('[', CAST(json_extract({0}, {1}) AS VARCHAR), ']') END"
)
_NO_JSON = "error(concat('this is no JSON: ', {0}))"
_NOTHING = "error(concat('nothing is at ', {1}, ' of ', {0}))"
_EMPTY = {"EMPTY ARRAY": "'[]'", "EMPTY OBJECT": "'{{}}'"}  # braces of templates


def _chosen(argument: int, of: Mapping[str, str]) -> str:
    """Return what the word says that an argument is; NULL for each other one."""
    words = " ".join(f"WHEN '{word}' THEN {sql}" for word, sql in of.items())
    return f"CASE upper({{{argument}}}) {words} END"


def _of_json(value: str, no_json: str) -> str:
    """Return a value of a path, and what takes its place where the text is no JSON."""
    return (
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL "
        f"WHEN json_valid({{0}}) THEN {value} ELSE {no_json} END"
    )


_UNKNOWN = {"TRUE": "TRUE", "FALSE": "FALSE", "ERROR": _NO_JSON}

JSON_FUNCTIONS: Mapping[str, Mapping[int, str]] = {
    "is_json": {
        1: "coalesce(json_valid({0}), FALSE)",
        2: "coalesce(CASE upper({1}) WHEN 'VALUE' THEN json_valid({0}) "
        f"WHEN 'SCALAR' THEN json_type({_JSON}) NOT IN ('OBJECT', 'ARRAY') "
        f"ELSE json_type({_JSON}) = upper({{1}}) END, FALSE)",
    },
    "json_exists": {
        2: f"coalesce({_EXISTS}, FALSE)",
        3: _of_json(_EXISTS, _chosen(2, _UNKNOWN)),
    },
    "json_query": {
        2: _NESTED_TEXT,
        6: _of_json(
            f"coalesce({_WRAPPED}, {_chosen(4, {**_EMPTY, 'ERROR': _NOTHING})})",
            _chosen(5, {**_EMPTY, "ERROR": _NO_JSON}),
        ),
    },
    "json_string": {1: "CAST(to_json({0}) AS VARCHAR)"},
    "json_value": {
        2: _SCALAR,
        7: _of_json(
            f"coalesce({_SCALAR}, {_chosen(3, {'DEFAULT': '{4}', 'ERROR': _NOTHING})})",
            _chosen(5, {"DEFAULT": "{6}", "ERROR": _NO_JSON}),
        ),
    },
    "parse_json": {1: "CAST(json(nullif(trim({0}), '')) AS VARCHAR)"},
    "try_parse_json": {1: f"CAST(json({_JSON}) AS VARCHAR)"},
}
"""By name: the SQL for each number of arguments."""

_EMPTIES = ("NULL", "EMPTY ARRAY", "EMPTY OBJECT", "ERROR")
_DEFAULTS = ("NULL", "DEFAULT", "ERROR")
WORDS: Mapping[str, Mapping[int, tuple[str, ...]]] = {
    "is_json": {1: ("VALUE", "OBJECT", "ARRAY", "SCALAR")},
    "json_exists": {2: ("FALSE", "TRUE", "UNKNOWN", "ERROR")},
    "json_query": {
        2: ("STRING", "ARRAY"),
        3: ("WITHOUT ARRAY", "WITH CONDITIONAL ARRAY", "WITH UNCONDITIONAL ARRAY"),
        4: _EMPTIES,
        5: _EMPTIES,
    },
    "json_value": {2: ("STRING", "VARCHAR", "CHAR"), 3: _DEFAULTS, 5: _DEFAULTS},
}
"""By name: the arguments that are words, and which words."""
