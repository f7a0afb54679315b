"""What a pipeline gives back when it ends."""
# pyright: basic

from contextlib import ExitStack
from types import SimpleNamespace

from kaflow_engine.errors import SourceError
from kaflow_engine.runtime import application


def broken():
    raise SourceError("the broker does not answer")


def test_a_lease_is_given_back_where_a_source_cannot_be_closed():
    released = []
    plan = SimpleNamespace(name="p", pipeline="p-id")
    outcomes = application._Outcomes()
    receivers = ExitStack()
    receivers.callback(broken)
    application._run(
        SimpleNamespace(plan=plan, run=lambda: "done"),
        outcomes,
        SimpleNamespace(release=released.append),
        receivers,
    )
    assert released == ["p-id"]
    assert [str(error) for error in outcomes.errors] == ["the broker does not answer"]
    assert outcomes.summaries == {"p": "done"}
