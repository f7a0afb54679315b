"""A sandbox for templates in which nothing takes long or grows large."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, cast

from jinja2 import StrictUndefined, TemplateSyntaxError, nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import SandboxedEnvironment

STEPS = 10_000
"""Most rounds of loops and calls of one template."""
LARGEST = 100_000
"""Most characters of a text, items of a list, and the greatest number that a function gets."""
RESULT = 1_000_000
"""Most characters of what a template gives."""

_FILTERS = """
abs capitalize count d default first float int items join last length list lower map max min reject
rejectattr replace round select selectattr sort string sum title trim unique upper
""".split()
_GLOBALS = ("dict", "namespace", "range")
_WIDTH = re.compile(r"\d{5,}|\*")
_GREATEST_POWER = 64


class Bounded(SandboxedEnvironment):
    """Renders one template, once."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        super().__init__(
            undefined=StrictUndefined, keep_trailing_newline=True, finalize=self._given
        )
        self.steps = 0
        self.given = 0
        self.filters = {name: _bounded(name, self.filters[name]) for name in _FILTERS}
        self.filters |= {"_each": self._each, "_short": _short}
        self.globals = {name: self.globals[name] for name in _GLOBALS}

    def rendered(self, text: str, variables: dict[str, Any]) -> str:
        """Render a template.

        Raises:
            TemplateError: It is wrong, or asks for too much.
        """
        tree = self.parse(text)
        self._rewrite(tree)
        found: list[str] = []
        size = 0
        for piece in self.from_string(tree).generate(variables):
            found.append(piece)
            size += len(piece)
            _refuse(size > RESULT, _TOO_LONG)
        return "".join(found)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call what a template calls; named as Jinja has it, because names go to the callee."""
        __self._step()
        name, owner = getattr(__obj, "__name__", ""), getattr(__obj, "__self__", None)
        _check(name, (owner, *args, *kwargs.values()))
        return _short(super().call(__context, __obj, *args, **kwargs))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Return what formats a text instead of Python's own function."""
        wrapped = super().wrap_str_format(value)
        if wrapped is not None:
            text = str(value.__self__)
            _refuse(_WIDTH.search(text) is not None, _TOO_LARGE)
        return wrapped

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Calculate."""
        match operator:
            case "**":
                _refuse(not -_GREATEST_POWER <= right <= _GREATEST_POWER, "the power is too large")
            case "*":
                for one, other in ((left, right), (right, left)):
                    if isinstance(one, str | list | tuple):
                        size = len(cast("str | list[Any] | tuple[Any, ...]", one))
                        _refuse(isinstance(other, int) and size * other > LARGEST, _TOO_LARGE)
            case "%":
                _refuse(isinstance(left, str) and bool(_WIDTH.search(left)), _TOO_LARGE)
            case _:
                pass
        return _short(super().call_binop(context, operator, left, right))

    def _rewrite(self, tree: nodes.Template) -> None:
        for loop in tree.find_all(nodes.For):
            if loop.recursive:
                raise TemplateSyntaxError("loops that call themselves are not here", loop.lineno)
            loop.iter = _filtered(loop.iter, "_each", loop.lineno)
        for block in tree.find_all(nodes.AssignBlock):
            block.filter = _filtered(block.filter, "_short", block.lineno)
        for assignment in list(tree.find_all(nodes.Assign)):
            assignment.node = _filtered(assignment.node, "_short", assignment.lineno)
        tree.set_environment(self)

    def _given(self, value: Any) -> Any:
        """Count what is given out, where the line is known."""
        self.given += len(str(value))
        _refuse(self.given > RESULT, _TOO_LONG)
        return value

    def _each(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self._step()
            yield item

    def _step(self) -> None:
        self.steps += 1
        _refuse(self.steps > STEPS, f"it takes more than {STEPS} steps")


_TOO_LONG = f"it gives more than {RESULT} characters"
_TOO_LARGE = f"a text, list or number is larger than {LARGEST}"


def _filtered(inner: nodes.Node | None, name: str, line: int) -> nodes.Filter:
    return nodes.Filter(cast("nodes.Expr | None", inner), name, [], [], None, None, lineno=line)


def _bounded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        _check(name, (*args, *kwargs.values()))
        return _short(function(*args, **kwargs))

    return wrapper


def _check(name: str, values: tuple[Any, ...]) -> None:
    """Refuse arguments from which something large would be made."""
    sizes = [len(value) for value in values if isinstance(value, str)]
    _refuse(any(isinstance(v, int) and abs(v) > LARGEST for v in values), _TOO_LARGE)
    match name:
        case "replace":
            _refuse(len(sizes) > 1 and max(sizes) * (sizes[-1] + 1) > 100 * LARGEST, _TOO_LARGE)
        case "join":
            lists = [len(cast(list[Any], v)) for v in values if isinstance(v, list | tuple)]
            _refuse(max(lists, default=0) * (max(sizes, default=0) + 1) > LARGEST, _TOO_LARGE)
        case _:
            pass


def _short(value: Any) -> Any:
    size = len(cast("str | list[Any]", value)) if isinstance(value, str | list | tuple) else 0
    number = abs(value) if isinstance(value, int) else 0
    _refuse(size > LARGEST or number > 10**30, _TOO_LARGE)
    return cast(Any, value)


def _refuse(holds: bool, why: str) -> None:
    if holds:
        raise SecurityError(why)
