"""What is shown while pipelines run, and at the end."""

import io
import json

from rich.console import Console

from kaflow_engine.cli.live_view.board import Board, Rate, account, clock_text
from kaflow_engine.cli.live_view.views import LiveView, PlainView
from kaflow_engine.cli.run.summary import summary_data, summary_lines
from kaflow_engine.telemetry.progress import PipelineSummary, Progress

COUNTS = {"read": 10, "emitted": 6, "dead_letter": 1, "waiting": 2, "expired": 1}
RUNNING = Progress(
    pipeline="p",
    state="running",
    batch=3,
    records=12,
    lag={"a": 1, "b": 4},
    counters={**COUNTS, "side_read": 2, "side_dead_letters": 1},
    watermark=1_767_225_600_000,
)


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_a_rate_is_that_of_the_last_seconds():
    rate = Rate()
    assert rate.note(0, 0.0) == 0
    assert rate.note(50, 5.0) == 10
    assert [rate.note(50, float(now)) for now in range(6, 17)][-1] == 0


def test_a_board_shows_pipelines_that_said_nothing_yet():
    board = Board(names=["p", "q"])
    board.progress(RUNNING)
    first, second = board.lines()
    assert (first.state, first.lag, first.waiting, first.dead_letters) == ("running", 5, 2, 2)
    assert first.watermark == "2026-01-01 00:00:00Z"
    assert (second.pipeline, second.state, second.watermark) == ("q", "starting", "-")


def test_what_is_beyond_every_calendar_is_the_end():
    assert clock_text(1 << 62) == "the end"


def test_plain_lines_tell_changes_at_once_and_the_rest_now_and_then(capsys):
    clock = Clock()
    view, board = PlainView(clock), Board(names=["p"], clock=clock)
    board.progress(Progress(pipeline="p"))
    view.refresh(board)
    assert capsys.readouterr().err == "p: starting\n"
    clock.now = 6.0
    view.refresh(board)
    assert capsys.readouterr().err == "no batch yet, 6 s so far\n"
    board.progress(RUNNING)
    board.show_rows([("out", '{"a":1}')])
    view.refresh(board)
    assert capsys.readouterr().err == 'p: running\nfirst row of out: {"a":1}\n'
    clock.now = 30.0
    view.refresh(board)
    told = capsys.readouterr().err
    assert told.startswith("p: running, batch 3, in ")
    assert "lag 5, waiting 2, dead letters 2, watermark 2026-01-01 00:00:00Z" in told
    clock.now = 60.0
    view.refresh(board)
    assert capsys.readouterr().err == ""


def test_the_live_view_holds_the_pipelines_and_the_newest_rows():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120, height=30)
    board = Board(names=["p"])
    board.progress(RUNNING)
    board.show_rows([("out", '{"tag":"[red]"}')])
    with LiveView(console) as view:
        view.refresh(board)
        view.say("stopping")
    text = screen.getvalue()
    for expected in ("running", "watermark", '{"tag":"[red]"}', "2026-01-01", "stopping"):
        assert expected in text


def test_an_error_is_shown_under_the_table():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120, height=30)
    board = Board(names=["p"])
    board.progress(Progress(pipeline="p", state="degraded", last_error="no broker\n  hint: x"))
    with LiveView(console) as view:
        view.refresh(board)
    assert "p: no broker" in screen.getvalue()


def test_the_classes_add_up_or_the_difference_is_named():
    assert account(COUNTS)[2] == 0
    assert account({**COUNTS, "read": 12})[2] == 2
    short = summary_lines([Progress(pipeline="p", counters={**COUNTS, "read": 12})], {})
    assert "DOES NOT ADD UP: +2" in short[2]


def test_the_summary_says_how_each_pipeline_ended():
    ended = PipelineSummary(
        pipeline="p", ending="drained", batches=1, records=12, seconds=2.0, counters=COUNTS
    )
    lines = summary_lines([RUNNING], {"p": ended})
    assert lines[2].split() == [
        *("p", "10", "=", "6", "+", "1", "+", "2", "+", "0", "+", "1", "+", "0", "adds", "up"),
    ]
    assert lines[-1] == (
        "p: drained after 12 records in 1 batch and 2.0 s; "
        "joined sides: 2 read in all, 1 dead letters"
    )
    data = json.loads(json.dumps(summary_data([RUNNING], {"p": ended})))
    (only,) = data["pipelines"]
    assert (only["read"], only["emitted"], only["adds_up"]) == (10, 6, True)
    assert only["ending"] == "drained"
