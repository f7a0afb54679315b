"""Functions by name."""

from kaflow_engine.model.lenses.functions.contract import Function

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SWAPPED = f"'{_LETTERS}{_LETTERS.upper()}', '{_LETTERS.upper()}{_LETTERS}'"
_HIDDEN = "'*****'"
"""What stands for the rest of a text, however long it is."""

_EPOCH = "DATE '1970-01-01'"
_EARTH_KM = 6371
_ZIP = (
    "list_transform(range(1, {count}(len({{0}}), len({{2}})) + 1), lambda place: "
    "struct_pack({{1:name}} := list_extract({{0}}, place), "
    "{{3:name}} := list_extract({{2}}, place)))"
)
_RANKED = (
    "coalesce(list_slice(list_transform(list_sort(list_transform(map_entries(histogram({{0}})), "
    "lambda pair: struct_pack(seen := {sign}CAST(pair.value AS BIGINT), which := pair.key))), "
    "lambda pair: pair.which), 1, {{1}}), [])"
)
"""Values by how often they were seen; of equally frequent ones the smallest first."""

FUNCTIONS: dict[str, Function] = {
    # aggregate
    "AVG": Function("aggregate", "avg({0})", 1, "passes"),
    "BOTTOMK": Function("aggregate", _RANKED.format(sign=""), 2, "removes"),
    "COLLECT": Function("aggregate", "list_slice(list({0}), 1, {1})", 2, "removes"),
    "COLLECT_UNIQUE": Function("aggregate", "list_slice(list(DISTINCT {0}), 1, {1})", 2, "removes"),
    "COUNT": Function("aggregate", "count({0})", 1, "removes"),
    "FIRST": Function("aggregate", "first({0})", 1, "passes"),
    "LAST": Function("aggregate", "last({0})", 1, "passes"),
    "MAX": Function("aggregate", "max({0})", 1, "passes"),
    "MAXK": Function("aggregate", "list_slice(list_reverse_sort(list({0})), 1, {1})", 2, "removes"),
    "MAXK_UNIQUE": Function(
        "aggregate", "list_slice(list_reverse_sort(list(DISTINCT {0})), 1, {1})", 2, "removes"
    ),
    "MIN": Function("aggregate", "min({0})", 1, "passes"),
    "MINK": Function("aggregate", "list_slice(list_sort(list({0})), 1, {1})", 2, "removes"),
    "MINK_UNIQUE": Function(
        "aggregate", "list_slice(list_sort(list(DISTINCT {0})), 1, {1})", 2, "removes"
    ),
    "SUM": Function("aggregate", "sum({0})", 1, "passes"),
    "TOPK": Function("aggregate", _RANKED.format(sign="-"), 2, "removes"),
    # array
    "ELEMENT_OF": Function("array", "list_extract({0}, {1} + 1)", 2, "makes"),
    "FLATTEN": Function("array", "flatten({0})", 1),
    "IN_ARRAY": Function("array", "list_contains({1}, {0})", 2),
    "REPEAT": Function("array", "repeat([{0}], {1})", 2),
    "SIZEOF": Function("array", "len({0})", 1),
    "ZIP": Function("array", _ZIP.format(count="least"), 4),
    "ZIP_ALL": Function("array", _ZIP.format(count="greatest"), 4),
    # date and time
    "CONVERT_DATETIME": Function("date", "strftime(strptime({0}, {1:pattern}), {2:pattern})", 3),
    "DAY": Function("date", "day({0})", 1),
    "EXTRACT_DATE": Function("date", "CAST({0} AS DATE)", 1),
    "EXTRACT_TIME": Function("date", "CAST({0} AS TIME)", 1),
    "FORMAT_DATE": Function("date", "strftime({0}, {1:pattern})", 2),
    "FORMAT_TIME": Function("date", f"strftime({_EPOCH} + {{0}}, {{1:pattern}})", 2),
    "FORMAT_TIMESTAMP": Function("date", "strftime({0}, {1:pattern})", 2),
    "HOUR": Function("date", "hour({0})", 1),
    "MINUTE": Function("date", "minute({0})", 1),
    "MONTH": Function("date", "month({0})", 1),
    "MONTH_TEXT": Function("date", "monthname({0})", 1),
    "PARSE_DATE": Function("date", "CAST(strptime({0}, {1:pattern}) AS DATE)", 2),
    "PARSE_TIMESTAMP_MICROS": Function("date", "strptime({0}, {1:pattern})", 2),
    "PARSE_TIMESTAMP_MILLIS": Function("date", "strptime({0}, {1:pattern})", 2),
    "PARSE_TIME_MICROS": Function("date", "CAST(strptime({0}, {1:pattern}) AS TIME)", 2),
    "PARSE_TIME_MILLIS": Function("date", "CAST(strptime({0}, {1:pattern}) AS TIME)", 2),
    "SECOND": Function("date", "second({0})", 1),
    "TIMESTAMP_MICROS": Function("date", "make_timestamp(CAST({0} AS BIGINT))", 1),
    "TIMESTAMP_MILLIS": Function("date", "epoch_ms(CAST({0} AS BIGINT))", 1),
    "TIME_MICROS": Function("date", "CAST(make_timestamp(CAST({0} AS BIGINT)) AS TIME)", 1),
    "TIME_MILLIS": Function("date", "CAST(epoch_ms(CAST({0} AS BIGINT)) AS TIME)", 1),
    "TO_DATE": Function("date", "CAST(strptime({0}, {1:pattern}) AS DATE)", 2),
    "TO_DATETIME": Function("date", "strptime({0}, {1:pattern})", 2),
    "TO_TIMESTAMP": Function(
        "date", "epoch_ms(CAST({0} AS BIGINT))", 1, with_more="strptime({0}, {1:pattern})"
    ),
    "YEAR": Function("date", "year({0})", 1),
    # headers
    "HEADERASDOUBLE": Function("header", "CAST(decode({headers}[{0}]) AS DOUBLE)", 1, "makes"),
    "HEADERASFLOAT": Function("header", "CAST(decode({headers}[{0}]) AS FLOAT)", 1, "makes"),
    "HEADERASINT": Function("header", "CAST(decode({headers}[{0}]) AS INTEGER)", 1, "makes"),
    "HEADERASLONG": Function("header", "CAST(decode({headers}[{0}]) AS BIGINT)", 1, "makes"),
    "HEADERASSTRING": Function("header", "decode({headers}[{0}])", 1, "makes"),
    "HEADERKEYS": Function("header", "map_keys({headers})", 0),
    # JSON
    "JSON_EXTRACT_ALL": Function("json", "CAST(json_extract({0}, {1:paths}) AS VARCHAR[])", 2),
    "JSON_EXTRACT_FIRST": Function("json", "CAST(json_extract({0}, {1}) AS VARCHAR)", 2, "makes"),
    # nulls
    "AS_NON_NULLABLE": Function(
        "null",
        "CASE WHEN {0} IS NULL THEN error('AS_NON_NULLABLE of NULL') ELSE {0} END",
        1,
        "removes",
    ),
    "AS_NULLABLE": Function("null", "{0}", 1, "allows"),
    "COALESCE": Function("null", "coalesce({*})", 1, "removes"),
    "EXISTS": Function("null", "({0} IS NOT NULL)", 1, "removes"),
    "ISNOTNULL": Function("null", "({0} IS NOT NULL)", 1, "removes"),
    "ISNULL": Function("null", "({0} IS NULL)", 1, "removes"),
    # numbers
    "ABS": Function("number", "abs({0})", 1),
    "ACOS": Function("number", "acos({0})", 1),
    "ASIN": Function("number", "asin({0})", 1),
    "ATAN": Function("number", "atan({0})", 1),
    "CBRT": Function("number", "cbrt({0})", 1),
    "CEIL": Function("number", "ceil({0})", 1),
    "COS": Function("number", "cos({0})", 1),
    "COSH": Function("number", "cosh({0})", 1),
    "DEGREES": Function("number", "degrees({0})", 1),
    "DISTANCE": Function(
        "number",
        f"(2 * {_EARTH_KM} * asin(sqrt(pow(sin(radians({{2}} - {{0}}) / 2), 2) "
        "+ cos(radians({0})) * cos(radians({2})) * pow(sin(radians({3} - {1}) / 2), 2))))",
        4,
    ),
    "FLOOR": Function("number", "floor({0})", 1),
    "MOD": Function("number", "({0} % {1})", 2),
    "NEG": Function("number", "(-{0})", 1),
    "POW": Function("number", "pow({0}, {1})", 2),
    "RADIANS": Function("number", "radians({0})", 1),
    "ROUND": Function("number", "round({*})", 1),
    "SIGN": Function("number", "sign({0})", 1),
    "SIN": Function("number", "sin({0})", 1),
    "SINH": Function("number", "sinh({0})", 1),
    "SQRT": Function("number", "sqrt({0})", 1),
    "TAN": Function("number", "tan({0})", 1),
    "TANH": Function("number", "tanh({0})", 1),
    # obfuscation
    "ANONYMIZE": Function("obfuscation", "repeat('*', length({0}))", 1),
    "EMAIL": Function(
        "obfuscation", f"left({{0}}, 1) || {_HIDDEN} || substr({{0}}, instr({{0}}, '@'))", 1
    ),
    "FIRST1": Function("obfuscation", f"left({{0}}, 1) || {_HIDDEN}", 1),
    "FIRST2": Function("obfuscation", f"left({{0}}, 2) || {_HIDDEN}", 1),
    "FIRST3": Function("obfuscation", f"left({{0}}, 3) || {_HIDDEN}", 1),
    "FIRST4": Function("obfuscation", f"left({{0}}, 4) || {_HIDDEN}", 1),
    "INITIALS": Function("obfuscation", r"regexp_replace(trim({0}), '(\S)\S*\s*', '\1', 'g')", 1),
    "LAST1": Function("obfuscation", f"{_HIDDEN} || right({{0}}, 1)", 1),
    "LAST2": Function("obfuscation", f"{_HIDDEN} || right({{0}}, 2)", 1),
    "LAST3": Function("obfuscation", f"{_HIDDEN} || right({{0}}, 3)", 1),
    "LAST4": Function("obfuscation", f"{_HIDDEN} || right({{0}}, 4)", 1),
    "MASK": Function("obfuscation", "repeat('*', length({0}))", 1),
    # text
    "ABBREVIATE": Function(
        "text", "CASE WHEN length({0}) > {1} THEN left({0}, {1} - 3) || '...' ELSE {0} END", 2
    ),
    "BASE64": Function("text", "base64(encode({0}))", 1),
    "CAPITALIZE": Function("text", "upper(left({0}, 1)) || substr({0}, 2)", 1),
    "CENTER": Function(
        "text",
        "CASE WHEN length({0}) >= {1} THEN {0} ELSE rpad(lpad({0}, "
        "CAST(length({0}) + ({1} - length({0})) // 2 AS INTEGER), {2}), {1}, {2}) END",
        3,
    ),
    "CHOP": Function("text", "left({0}, greatest(length({0}) - 1, 0))", 1),
    "CONCAT": Function("text", "concat({*})", 1),
    "CONCATENATE": Function("text", "concat({*})", 1),
    "CONTAINS": Function("text", "contains({0}, {1})", 2),
    "DECODE64": Function("text", "decode(from_base64({0}))", 1),
    "DELETEWHITESPACE": Function("text", r"regexp_replace({0}, '\s+', '', 'g')", 1),
    "DIGITS": Function("text", "regexp_replace({0}, '[^0-9]', '', 'g')", 1),
    "DROPLEFT": Function("text", "substr({0}, {1} + 1)", 2),
    "DROPRIGHT": Function("text", "left({0}, greatest(length({0}) - {1}, 0))", 2),
    "ENDSWITH": Function("text", "ends_with({0}, {1})", 2),
    "INDEXOF": Function("text", "(instr({0}, {1}) - 1)", 2),
    "LEFTPAD": Function("text", "lpad({0}, {1}, {2})", 3),
    "LEN": Function("text", "length({0})", 1),
    "LENGTH": Function("text", "length({0})", 1),
    "LOWER": Function("text", "lower({0})", 1),
    "LOWERCASE": Function("text", "lower({0})", 1),
    "LPAD": Function("text", "lpad({0}, {1}, {2})", 3),
    "MKSTRING": Function("text", "CAST({0} AS VARCHAR)", 1),
    "REGEX": Function("text", "regexp_extract_all({0}, {1})", 2),
    "REGEXP": Function("text", "regexp_extract_all({0}, {1})", 2),
    "REPLACE": Function("text", "replace({0}, {1}, {2})", 3),
    "REVERSE": Function("text", "reverse({0})", 1),
    "RIGHTPAD": Function("text", "rpad({0}, {1}, {2})", 3),
    "RPAD": Function("text", "rpad({0}, {1}, {2})", 3),
    "STARTSWITH": Function("text", "starts_with({0}, {1})", 2),
    "STRIPACCENTS": Function("text", "strip_accents({0})", 1),
    "SUBSTR": Function(
        "text", "substr({0}, {1} + 1)", 2, with_more="substr({0}, {1} + 1, {2} - {1})"
    ),
    "SUBSTRING": Function(
        "text", "substr({0}, {1} + 1)", 2, with_more="substr({0}, {1} + 1, {2} - {1})"
    ),
    "SWAPCASE": Function("text", f"translate({{0}}, {_SWAPPED})", 1),
    "TAKELEFT": Function("text", "left({0}, {1})", 2),
    "TAKERIGHT": Function("text", "right({0}, {1})", 2),
    "TRIM": Function("text", "trim({0})", 1),
    "TRUNCATE": Function("text", "left({0}, {1})", 2),
    "UNCAPITALIZE": Function("text", "lower(left({0}, 1)) || substr({0}, 2)", 1),
    "UPPER": Function("text", "upper({0})", 1),
    "UPPERCASE": Function("text", "upper({0})", 1),
}

_OF_SEVERAL = {
    "MAX": Function("number", "greatest({*})", 2),
    "MIN": Function("number", "least({*})", 2),
}
"""Aggregates of one argument that of several are the value of one record."""


def function_of(name: str, arguments: int) -> Function | None:
    """Return the function that is called so, in capitals, with so many arguments; where it takes
    another number of them, the function is returned all the same."""
    several = _OF_SEVERAL.get(name) if arguments > 1 else None
    return several or FUNCTIONS.get(name)


_NOT_NOW = "write TIMESTAMP_MILLIS(_meta.timestamp): a batch that runs again must give the same"
_NOT_BY_CHANCE = "use a field of the record: a batch that runs again must give the same"

REFUSED: dict[str, str] = {
    "DATE": _NOT_NOW,
    "DATETIME": _NOT_NOW,
    "DUMP": "write MKSTRING",
    "LAST_OFFSET": "remove it: a processor reads all records; write `kaflow run --max-records` to "
    "look at some",
    "RANDINT": _NOT_BY_CHANCE,
    "REGEX_MATCHES": "write REGEXP, which gives all that matches, without groups",
    "TIMESTAMP": _NOT_NOW,
    "TOMORROW": _NOT_NOW,
    "TYPEOF": "write CAST where a field needs another type",
    "UUID": _NOT_BY_CHANCE,
    "YESTERDAY": _NOT_NOW,
}
"""Functions of Lenses that are not here, and what to write instead."""
