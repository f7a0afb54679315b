"""Functions of Streamling that DuckDB has not under their names: what they are there.

All others are DuckDB's of the same name; one that DuckDB has not is refused where types are found.
"""

from collections.abc import Callable, Iterator, Mapping

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.model.files.tree import brief
from kaflow_engine.model.streamling.sql.decimals import DECIMALS
from kaflow_engine.model.streamling.sql.json_functions import JSON_FUNCTIONS, WORDS
from kaflow_engine.model.streamling.sql.text import Edit, SqlText, edited

_HEX = "regexp_replace({0}, '^0[xX]', '')"
_BYTES = f"CASE WHEN regexp_full_match({_HEX}, '([0-9a-fA-F][0-9a-fA-F])*') THEN unhex({_HEX}) END"
_TOKENS = "CASE WHEN {1} = '' THEN [{0}] ELSE string_split({0}, {1}) END"


def _zipped(lists: int) -> str:
    fields = ", ".join(f"'f{number}': each[{number + 1}]" for number in range(lists))
    args = ", ".join(f"{{{number}}}" for number in range(lists))
    return f"list_transform(list_zip({args}), lambda each: {{{{{fields}}}}})"


def _first_of(values: int) -> str:
    return f"coalesce({', '.join(f'{{{number}}}' for number in range(values))})"


def _wide(kind: str) -> dict[str, Mapping[int, str]]:
    """Return the functions of a type of 256 bits: outside of its bounds they fail."""
    of_two = {"add": "+", "sub": "-", "mul": "*", "div": "//", "mod": "%"}
    return {
        f"to_{kind}": {1: f"CAST({{0}} AS {kind.upper()})"},
        f"{kind}_to_string": {1: "CAST({0} AS VARCHAR)"},
        **{
            f"{kind}_{name}": {2: f"CAST(({{0}}) {sign} ({{1}}) AS {kind.upper()})"}
            for name, sign in of_two.items()
        },
    }


FUNCTIONS: Mapping[str, Mapping[int, str]] = {
    **_wide("u256"),
    **_wide("i256"),
    **JSON_FUNCTIONS,
    **DECIMALS,
    "i256_abs": {1: "CAST(abs({0}) AS I256)"},
    "i256_neg": {1: "CAST(-({0}) AS I256)"},
    "_gs_byte_to_hex": {1: "lower(hex({0}))"},
    "_gs_conv_base": {
        3: "conv_base({0}, TRY_CAST({1} AS INTEGER), TRY_CAST({2} AS INTEGER))",
    },
    "_gs_from_base58": {1: "coalesce(from_base58({0}), ''::BLOB)"},
    "_gs_generate_series": {
        2: "generate_series({0}, {1})",
        3: "generate_series({0}, {1}, {2})",
    },
    "_gs_hex_to_byte": {1: f"coalesce({_BYTES}, ''::BLOB)"},
    "_gs_json_objects_to_clickhouse_tuples": {2: "clickhouse_tuples({0}, {1})"},
    "_gs_keccak256": {1: "keccak256({0})"},
    "_gs_map_to_array_struct": {1: "map_entries({0})"},
    "_gs_split_string_to_array": {
        1: "string_split({0}, ' ')",
        2: "string_split({0}, {1})",
    },
    "_gs_xxhash": {1: "xxhash({0})"},
    "_gs_zip_arrays": {number: _zipped(number) for number in (2, 3, 4)},
    "array_enumerate": {
        1: "list_transform({0}, lambda each, place: {{'index': place - 1, 'value': each}})"
    },
    "array_filter": {3: "list_filter({0}, lambda each: each[{1}] IS NOT DISTINCT FROM {2})"},
    "array_filter_first": {
        3: "list_filter({0}, lambda each: each[{1}] IS NOT DISTINCT FROM {2})[1]"
    },
    "array_filter_in": {3: "list_filter({0}, lambda each: list_contains({2}, each[{1}]))"},
    "array_struct_field": {2: "list_transform({0}, lambda each: each[{1}])"},
    "char_length": {1: "length({0})"},
    "coalesce_meta": {number: _first_of(number) for number in range(1, 9)},
    "locate": {
        2: "instr({1}, {0})",
        3: "CASE WHEN {2} < 1 OR instr(substr({1}, {2}), {0}) = 0 THEN 0 "
        "ELSE instr(substr({1}, {2}), {0}) + {2} - 1 END",
    },
    "regexp_count": {2: "len(regexp_extract_all({0}, {1}))"},
    "regexp_replace": {
        3: "regexp_replace({0}, {1}, replace({2}, '\\', '\\\\'), 'g')",
    },
    "regexp_substr": {2: "nullif(regexp_extract({0}, {1}), '')"},
    "reverse_bytes32": {1: "reverse_bytes({0})"},
    "split": {2: "string_split({0}, {1})"},
    "split_index": {3: f"({_TOKENS})[CASE WHEN {{2}} >= 0 THEN {{2}} + 1 END]"},
    "to_int64": {1: "TRY_CAST({0} AS BIGINT)"},
    "to_large_list": {1: "({0})"},
}
"""By name: the SQL for each number of arguments; `{0}` is the first of them."""


def rewritten(sql: SqlText, place: Callable[[int], Location]) -> tuple[str, list[SqlError]]:
    """Return a query whose functions DuckDB has, on the lines of its author, and what is wrong.

    Args:
        sql: As it stands.
        place: Where a character of it stands.
    """
    mistakes: list[SqlError] = []
    edits = [*_calls(sql, range(len(sql.words)), place, mistakes)]
    return edited(sql.text, edits), mistakes


def _calls(
    sql: SqlText,
    words: range,
    place: Callable[[int], Location],
    mistakes: list[SqlError],
) -> Iterator[Edit]:
    """Yield an edit for each call that is not inside another one."""
    at = words.start
    while at < words.stop - 1:
        name = sql.words[at].text.lower()
        if (
            name not in FUNCTIONS
            or sql.words[at].kind == "STRING"
            or sql.words[at + 1].kind != "L_PAREN"
        ):
            at += 1
            continue
        inside_call = range(at + 2, words.stop)
        end = next((p for p in inside_call if sql.depths[p] == sql.depths[at]), None)
        if end is None:
            return  # a bracket has no end, which is reported where types are found
        inside = range(at + 2, end)
        arguments = sql.split(inside, "COMMA") if inside else []
        texts = [_inner(sql, each, place, mistakes) for each in arguments]
        if (wrong := _wrong(name, texts)) is not None:
            message, hint = wrong
            mistakes.append(SqlError(message, place(sql.words[at].start), hint))
        elif (template := FUNCTIONS[name].get(len(texts))) is not None:
            start, stop = sql.words[at].start, sql.words[end].end
            text = _filled(template, texts)
            lost = sql.text.count("\n", start, stop) - text.count("\n")
            yield Edit(start, stop, text + "\n" * lost)
        at = end + 1


_ALSO_DUCKDB = ("array_filter", "regexp_replace", "split")
"""Those that DuckDB has with other arguments."""


def _wrong(name: str, arguments: list[str]) -> tuple[str, str] | None:
    """Return what is wrong with a call, and what to do; None: nothing, as far as is known here."""
    if len(arguments) not in FUNCTIONS[name] and name not in _ALSO_DUCKDB:
        takes = " or ".join(map(str, FUNCTIONS[name]))
        return (
            f"'{name}' takes {takes} arguments here, and has {len(arguments)}",
            "write it as an expression of DuckDB",
        )
    for place, words in WORDS.get(name, {}).items():
        said = arguments[place] if place < len(arguments) else "NULL"
        if said.upper() not in ("NULL", *(f"'{word}'" for word in words)):
            return (
                f"argument {place + 1} of '{name}' is {brief(said)}",
                "write one of " + ", ".join(f"'{word}'" for word in words),
            )
    return None


def _inner(
    sql: SqlText, words: range, place: Callable[[int], Location], mistakes: list[SqlError]
) -> str:
    """Return an argument with the calls in it."""
    if not words:
        return ""
    start, stop = sql.words[words.start].start, sql.words[words.stop - 1].end
    edits = [
        Edit(edit.start - start, edit.end - start, edit.text)
        for edit in _calls(sql, words, place, mistakes)
    ]
    return edited(sql.text[start:stop], edits)


def _filled(template: str, arguments: list[str]) -> str:
    """Put arguments into a template: where one comes again, on one line."""
    again = [" ".join(text.split()) for text in arguments]
    for number in range(len(arguments)):
        mark = f"{{{number}}}"
        template = template.replace(mark, f"\0{number}\0", 1).replace(mark, f"\1{number}\1")
    template = template.replace("{{", "{").replace("}}", "}")
    for number, text in enumerate(arguments):
        template = template.replace(f"\0{number}\0", text).replace(f"\1{number}\1", again[number])
    return template
