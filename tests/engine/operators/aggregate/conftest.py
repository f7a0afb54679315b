"""Flows with aggregates, run in one task and in several."""

# pyright: basic

import pytest

from tests.engine.operators.aggregate.flows import Running, flow


@pytest.fixture(params=[False, True], ids=["one task", "several tasks"])
def running(request):
    return lambda *given, **more: Running(flow(*given, **more), request.param)
