"""Templates of models reach nothing of Python, and end soon, with the line."""

import signal

import pytest

from kaflow_engine.errors import ModelError
from kaflow_engine.model.dbt.template import Names, render

NAMES = Names(
    source=lambda source, table: table,
    ref=lambda model: model,
    variables={"n": 3, "days": ["a", "b"]},
    environment={},
)

ESCAPES = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ config.__globals__ }}",
    "{{ config.__closure__ }}",
    "{{ ref.__self__ }}",
    "{{ ''['__class__'] }}",
    "{{ ''|attr('__class__') }}",
    "{{ '{0.__class__}'.format(1) }}",
    "{{ var.__init__.__globals__['os'] }}",
    "{{ self.__init__.__globals__ }}",
    "{{ self._TemplateReference__context }}",
    "{{ range.__call__.__self__ }}",
    "{{ cycler.__init__.__globals__.os }}",
    "{{ lipsum.__globals__ }}",
    "{{ namespace.__init__ }}",
    "{% set _ = days_list.append(1) %}",
    "{% import 'os' as os %}",
    "{% from 'os' import system %}",
    "{% include '/etc/passwd' %}",
    "{% extends '/etc/passwd' %}",
    "{{ open('/etc/passwd') }}",
    "{{ eval('1') }}",
    "{{ env_var('HOME') }}",
    "{{ debug() }}",
    "{% debug %}",
]
BOMBS = [
    "{% for a in range(1000000000) %}{% endfor %}",
    "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
    "{% for a in 'x' * 999 %}{% for b in 'x' * 999 %}{% set c = 1 %}{% endfor %}{% endfor %}",
    "{{ 'x' * 10**10 }}",
    "{{ 10**10 * 'x' }}",
    "{{ [1] * 10**10 }}",
    "{{ 9 ** 9 ** 9 }}",
    "{{ 'a'.center(10**10) }}",
    "{{ 'a'|center(10**10) }}",
    "{{ 'a'.zfill(10**10) }}",
    "{{ '\t'.expandtabs(10**10) }}",
    "{{ '{:10000000000}'.format(1) }}",
    "{{ '{:{}}'.format(1, 10**10) }}",
    "{{ '%10000000000d' % 1 }}",
    "{{ '%*d' % (10000000000, 1) }}",
    "{{ lipsum(n=100000) }}",
    "{{ ('x' * 90000).replace('x', 'x' * 90000) }}",
    "{{ ('x' * 90000)|replace('x', 'x' * 90000) }}",
    "{{ ('x' * 90000).join(['a'] * 90000) }}",
    "{{ (['a'] * 90000)|join('x' * 90000) }}",
    "{% set x = 'x' %}" + "{% set x = x ~ x %}" * 60,
    "{% set x = 'x' %}" + "{% set x = x + x %}" * 60,
    "{% set x = 'x' %}" + "{% set x %}{{ x }}{{ x }}{% endset %}" * 60,
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(40) }}",
    "{% for a in [[[]]] recursive %}{{ loop(a) }}{{ loop(a) }}{% endfor %}",
    "{% for a in range(5000) %}{{ 'x' * 9999 }}{% endfor %}",
]


@pytest.fixture
def gives_up():
    """End a test that would go on for ever."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it was not refused in a minute"))
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("gives_up")
@pytest.mark.parametrize("text", [*ESCAPES, *BOMBS], ids=lambda text: text[:60])
def test_it_is_refused_with_the_line(text):
    with pytest.raises(ModelError) as caught:
        render(f"-- one\n-- two\n{text}\n", "m.sql", NAMES)
    assert str(caught.value).startswith("m.sql:3: ")


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("{% for d in var('days') %}{{ d }}{{ ',' if not loop.last }}{% endfor %}", "a,b"),
        ("{{ var('days')|join(', ')|upper }}", "A, B"),
        ("{{ 'x' * var('n') ~ '!' }}", "xxx!"),
        ("{% set x %}{{ 2 ** 10 }}{% endset %}{{ x }}", "1024"),
        ("{% macro f(a) %}{{ a.upper() }}{% endmacro %}{{ f('q') }}", "Q"),
        ("{{ '%03d' % 7 }} {{ '{:>4}'.format(1) }}", "007    1"),
        ("{% for i in range(3) %}{{ loop.length - i }}{% else %}none{% endfor %}", "321"),
        ("{% for k, v in {'a': 1}|items %}{{ k }}={{ v }}{% endfor %}", "a=1"),
        ("{{ var('missing', 'there') }}", "there"),
    ],
)
def test_what_models_need_works(text, sql):
    assert render(text, "m.sql", NAMES).sql == sql
