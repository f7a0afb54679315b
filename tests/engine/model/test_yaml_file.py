"""YAML as we read it: YAML 1.2 scalars, variables, and limits."""

from pathlib import Path

import pytest

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.files import yaml_file
from kaflow_engine.model.files.tree import Plain, from_plain, to_plain, walk
from kaflow_engine.model.files.yaml_file import parse_yaml
from kaflow_engine.model.pipelines.loader import load_pipeline


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("true", True),
        ("FALSE", False),
        ("10:30", "10:30"),
        ("2026-01-01", "2026-01-01"),
        ("007", 7),
        ("-12", -12),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1_000", "1_000"),
        ("0x1F", "0x1F"),
        ("'5'", "5"),
        ("", None),
        ("~", None),
        ("null", None),
        ("'null'", "null"),
        ("${N}", 5),
        ("'${N}'", "5"),
        ("${EMPTY}", None),
        ("'${EMPTY}'", ""),
        ("${EMPTY:-x}", "x"),
        ("${NONE:-}", None),
        ("a${N}b${NONE:-c d}", "a5bc d"),
        ("$N $ {N} $$ $$$$ $${N}", "$N $ {N} $ $$ ${N}"),
        ("${NOT}", "null"),
        ("&a [1, 2]", [1, 2]),
        ("{a: {b: }}", {"a": {"b": None}}),
    ],
)
def test_values(text: str, value: Plain) -> None:
    variables = {"N": "5", "EMPTY": "", "NOT": "null"}
    if text == "${NOT}":
        value = "null"
    root = parse_yaml(f"key: {text}\n", Location("f.yaml"), variables).sound()
    found = to_plain(root)
    assert isinstance(found, dict)
    assert found["key"] == value
    assert type(found["key"]) is type(value)


def test_the_lines_of_keys_and_items() -> None:
    root = parse_yaml("a:\n- 1\n- b: |\n\n    x\n  c:\n    d\n", Location("f.yaml"), {}).sound()
    assert [(path, at.line) for path, at, _ in walk(root)] == [
        (("a",), 1),
        (("a", 0), 2),
        (("a", 1), 3),
        (("a", 1, "b"), 3),
        (("a", 1, "c"), 6),
    ]


def test_aliases_are_followed_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_file, "LARGEST", 1_000)
    text = "a: &a [x, x]\nb: [*a, *a]\n"
    assert to_plain(parse_yaml(text, Location("f.yaml"), {}).root) == {
        "a": ["x", "x"],
        "b": [["x", "x"], ["x", "x"]],
    }
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
    )
    with pytest.raises(ModelError, match=r"f\.yaml:\d+: the file is too large"):
        parse_yaml(bomb, Location("f.yaml"), {})


@pytest.mark.parametrize("depth", [102, 450, 1_200])
def test_nesting_has_a_limit(depth: int) -> None:
    with pytest.raises(ModelError, match="nested too deeply"):
        parse_yaml("[" * depth + "]" * depth, Location("f.yaml"), {})


def test_plain_data_round_trips() -> None:
    data: dict[str, Plain] = {"a": [1, 2.5, True, None, "x"], "b": {"c": []}}
    assert to_plain(from_plain(data, Location("here"))) == data


def test_a_file_with_a_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    text = "name: p\r\nquery: |\r\n  SELECT\r\n  1\r\noutput: {topic: o}\r\n"
    (path := tmp_path / "p.yaml").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert (spec := load_pipeline(path, {})).query == "SELECT\n1\n"
    assert spec.place("output").line == 5


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (path := tmp_path / "p.yaml").write_bytes(b"name: p\nquery: \xff\n")
    with pytest.raises(ModelError, match=r"p\.yaml:2: not UTF-8 text"):
        load_pipeline(path, {})
    with pytest.raises(ModelError, match="this is a folder, not a file"):
        load_pipeline(tmp_path, {})
