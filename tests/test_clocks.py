"""No test passes or fails by how long something took: this searches all of them.

A deadline after which a wait gives up is fine: it is compared inside the loop that waits.
"""
# pyright: basic

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CLOCKS = {"time", "time_ns", "monotonic", "monotonic_ns"}
STOPWATCHES = {"perf_counter", "process_time", "thread_time"}
"""They are good for nothing but measuring; each has a twin in nanoseconds."""


class Search(ast.NodeVisitor):
    """Finds the lines of a file in which something is measured and judged."""

    def __init__(self) -> None:
        self.found: list[int] = []
        self._clocks: set[str] = set()
        self._moments: set[str] = set()
        self._spans: set[str] = set()
        self._loops = 0

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module == "time":
            self._clocks |= {name.asname or name.name for name in node.names if name.name in CLOCKS}
            if any(_is_stopwatch(name.name) for name in node.names):
                self.found.append(node.lineno)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if _is_stopwatch(node.attr):
            self.found.append(node.lineno)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        # programs that a test hands to another process
        if isinstance(node.value, str) and any(f"{name}(" in node.value for name in STOPWATCHES):
            self.found.append(node.lineno)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = {each.id for each in node.targets if isinstance(each, ast.Name)}
        if self._has_span(node.value):
            self._spans |= names
        elif self._is_moment(node.value):
            self._moments |= names
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and self._has_span(node.value):
            self.found.append(node.lineno)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self._loop(node)

    def visit_While(self, node: ast.While) -> None:
        self._loop(node)

    def _loop(self, node: ast.For | ast.While) -> None:
        self._loops += 1
        for each in node.body:
            self.visit(each)
        self._loops -= 1
        for each in node.orelse:
            self.visit(each)

    def visit_Compare(self, node: ast.Compare) -> None:
        moments = any(map(self._is_moment, (node.left, *node.comparators)))
        if self._has_span(node) or (moments and not self._loops):
            self.found.append(node.lineno)
        self.generic_visit(node)

    def _has_span(self, node: ast.AST) -> bool:
        return any(map(self._is_span, ast.walk(node)))

    def _is_span(self, node: ast.AST) -> bool:
        """Tell whether this is the difference of two moments."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            return self._is_moment(node.left) and not isinstance(node.right, ast.Constant)
        return isinstance(node, ast.Name) and node.id in self._spans

    def _is_moment(self, node: ast.AST) -> bool:
        if isinstance(node, ast.BinOp):
            return self._is_moment(node.left) or self._is_moment(node.right)
        if isinstance(node, ast.Call):
            return self._is_clock(node.func)
        return isinstance(node, ast.Name) and node.id in self._moments

    def _is_clock(self, called: ast.expr) -> bool:
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            return called.value.id == "time" and called.attr in CLOCKS
        return isinstance(called, ast.Name) and called.id in self._clocks


def _is_stopwatch(name: str) -> bool:
    return name.removesuffix("_ns") in STOPWATCHES


def measured(text: str) -> list[int]:
    """Return the lines of a test file that judge by the clock."""
    search = Search()
    for each in ast.parse(text).body:
        search.visit(each)
    return sorted(set(search.found))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("began = time.monotonic()\nwork()\nassert time.monotonic() - began < 5", [3]),
        ("began = time.monotonic()\nspent = time.time() - began\nassert 1 < spent", [3]),
        ("began = time.time()\nassert time.time() < began + 5", [2]),
        ("from time import monotonic as now\na = now()\nif now() - a > 5:\n    fail()", [3]),
        ("def took(began):\n    return time.monotonic() - began", [2]),
        ("began = time.perf_counter()", [1]),
        ("from time import process_time_ns", [1]),
        ("CODE = 'import time; print(time.process_time())'", [1]),
        ("end = time.monotonic() + 5\nwhile look():\n    assert time.monotonic() < end", []),
        ("end = time.monotonic() + 5\nwhile time.monotonic() < end:\n    look()", []),
        ("began = time.monotonic()\nprint(time.monotonic() - began)", []),
        ("since = time.time() + 1\nassert tick(since) == 'ok'\nassert ended - begun == 3", []),
        ("assert age(time.time() - 60) == 60", []),
    ],
)
def test_the_search_finds_it(text, lines):
    assert measured(text) == lines


def test_no_test_judges_by_the_clock():
    files = [file for file in sorted(TESTS.rglob("*.py")) if file != Path(__file__)]
    assert len(files) > 100
    assert [f"{file}:{line}" for file in files for line in measured(file.read_text())] == []
