"""Approvals: a state may be rebuilt for exactly the change that was looked at."""

from collections.abc import Iterator, Sequence

from kaflow_engine.errors import StateError, UnknownName
from kaflow_engine.flow.flow import Flow
from kaflow_engine.runtime.planning.plan_codec import decided
from kaflow_engine.runtime.planning.preview import Outlook
from kaflow_engine.state.log.approval import Approval, Begin, save_approval
from kaflow_engine.state.storage.store import LocalStore

EVERY = "all"
"""Stands for every pipeline that needs it."""


def chosen(found: Sequence[Outlook], names: Sequence[str]) -> tuple[Outlook, ...]:
    """Return the pipelines that are to be approved.

    Args:
        found: All pipelines.
        names: Of those that a person named; `all` stands for every one that needs it.

    Raises:
        UnknownName: There is no such pipeline.
        StateError: One of them needs no approval, or what it needs is something else.
    """
    by_name = {each.name: each for each in found}
    wanted = [name for name in names if name != EVERY or name in by_name]
    for name in wanted:
        if name not in by_name:
            raise UnknownName("pipeline", name, by_name)
        status = by_name[name].verdict.status
        if status in ("unclear", "damaged"):
            raise StateError(
                f"pipeline '{name}' cannot be approved: " + "; ".join(by_name[name].verdict.reasons)
            )
        if status != "rebuild":
            raise StateError(
                f"pipeline '{name}' needs no approval", hint="`kaflow plan` says what a start does"
            )
    if EVERY in names and EVERY not in by_name:
        wanted += [each.name for each in found if each.verdict.status == "rebuild"]
    return tuple(by_name[name] for name in dict.fromkeys(wanted))


def approve(found: Outlook, begin: Begin, by: str, at: str) -> Approval:
    """Write the decision that the next start obeys, once, for this pair of plans.

    Args:
        found: A pipeline that needs a rebuild.
        begin: Where its events begin again.
        by: Who decided.
        at: When, ISO 8601 in UTC.

    Raises:
        StateError: Events cannot go on where they are.
    """
    assert found.new is not None
    assert found.stored.state is not None
    both = list(_twofold(found.new))
    if begin == "continue" and both:
        raise StateError(
            f"topic '{both[0]}' is a dimension of pipeline '{found.name}' and drives it, too: its "
            "values are loaded again, and its rows would come again",
            hint="say which you want: --from earliest, or --from latest",
        )
    approval = Approval(
        pipeline=found.id,
        old=found.stored.state.fingerprint,
        new=decided(found.new),
        begin=begin,
        reasons=found.verdict.reasons,
        by=by,
        at=at,
    )
    save_approval(LocalStore(found.stored.directory), approval)
    return approval


def _twofold(plan: Flow) -> Iterator[str]:
    for topic in plan.sources:
        if topic.is_kept and topic.drives:
            yield topic.name
