"""Flows with tables, run in one task and in several."""

# pyright: basic

import pytest

from tests.engine.operators.table.flows import Running, flow


@pytest.fixture(params=[False, True], ids=["one task", "several tasks"])
def running(request):
    def made(*given, shown=("v",), **more):
        return Running(flow(*given, **more), request.param, shown)

    return made
