"""What counts for one query of a pipeline: what it says itself, before what the pipeline says."""

from collections.abc import Hashable

from kaflow_engine.errors import Location
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.query_settings import OF_QUERIES, QuerySettings
from kaflow_engine.model.spec import Path
from kaflow_engine.model.specs import PipelineSpec

OF_JOINS = ("emission", "within", "row_time", "lookup", "state")
"""Keys that say when joined rows leave, and for how long rows may match."""


def settings_at(spec: PipelineSpec, owner: Path) -> QuerySettings | None:
    """Return what a relation or an output says itself; None of the pipeline."""
    match owner:
        case ("relations", str(name)):
            return spec.queried.get(name)
        case ("outputs", int(number)):
            return spec.outputs[number]
        case _:
            return None


def owners(spec: PipelineSpec, key: str) -> tuple[Path, ...]:
    """Return the relations and outputs that say something under a key themselves."""
    every: list[Path] = [("relations", name) for name in spec.relations]
    every += [("outputs", number) for number in range(len(spec.outputs))]
    return tuple(owner for owner in every if _says(spec, owner, key))


def owner_at(spec: PipelineSpec, write: Write, at: Location, key: str) -> Path:
    """Return who says what counts under a key for a place in a query; () is the pipeline.

    Args:
        spec: What the author wrote.
        write: The output whose query it is.
        at: The place: in the query of the output, or in that of a relation which it reads.
        key: One of `OF_QUERIES`.
    """
    name = _relation_with(spec, write, at)
    owner: Path = write.at if name is None else ("relations", name)
    return owner if _says(spec, owner, key) else ()


def owner_of_rows(spec: PipelineSpec, write: Write, key: str) -> Path:
    """Return who says what counts under a key for the rows that an output writes."""
    called = (write.relation or "").lower()
    names = (name for name in spec.relations if name.lower() == called)
    owner: Path = next((("relations", name) for name in names), write.at)
    return owner if _says(spec, owner, key) else ()


def _relation_with(spec: PipelineSpec, write: Write, at: Location) -> str | None:
    """Return the relation in whose query a place is; None: in that of the output."""
    found: list[str] = []
    for name, relation in spec.queried.items():
        start = spec.place("relations", name, "query")
        if relation.query is None or start.line is None or at.line is None or start.file != at.file:
            continue
        # queries that were given without places all stand in one
        if write.query is not None and start == spec.place(*write.query_at):
            continue
        if start.line <= at.line <= start.line + relation.query.rstrip().count("\n"):
            found.append(name)
    return found[0] if len(found) == 1 else None


def as_said_by(spec: PipelineSpec, owner: Path) -> PipelineSpec:
    """Return a pipeline as it counts for one query: what that says itself stands in the place of
    what the pipeline says, so that mistakes are reported where they were made."""
    own = settings_at(spec, owner)
    said = {} if own is None else {key: getattr(own, key) for key in OF_QUERIES}
    said = {key: value for key, value in said.items() if value is not None}
    if not said:
        return spec
    depth = len(owner)
    moved = {
        path[depth:]: at
        for path, at in spec.places.items()
        if path[:depth] == owner and len(path) > depth and path[depth] in said
    }
    kept = {path: at for path, at in spec.places.items() if path[:1] not in {(k,) for k in said}}
    if own is not None and own.state is not None:
        events = own.state.events.over(spec.state.events)
        said["state"] = spec.state.model_copy(update={"events": events})
        kept |= {path: at for path, at in spec.places.items() if path[:1] == ("state",)}
    return spec.model_copy(update={**said, "places": {**kept, **moved}})


def joins_said_at(spec: PipelineSpec, write: Write, at: Location) -> Path:
    """Return where it stands when the rows of a join leave; of places that say the same, the first
    one, so that queries that join alike share what they keep.

    Args:
        spec: What the author wrote.
        write: The output whose query it is.
        at: Where the join stands.
    """
    own = next((o for key in OF_JOINS if (o := owner_at(spec, write, at, key))), ())
    if not own:
        return ()
    said = _of_joins(as_said_by(spec, own))
    others = dict.fromkeys(owner for key in OF_JOINS for owner in owners(spec, key))
    return next(o for o in ((), *others) if _of_joins(as_said_by(spec, o)) == said)


def _of_joins(spec: PipelineSpec) -> Hashable:
    emission, events = spec.emission, spec.state.events
    return (
        events.default_ttl,
        tuple(sorted(events.overrides.items())),
        emission.type,
        "type" in emission.model_fields_set,
        emission.require,
        emission.on_expiry,
        spec.within.model_dump_json() if spec.within is not None else None,
        spec.row_time,
        spec.lookup,
    )


def _says(spec: PipelineSpec, owner: Path, key: str) -> bool:
    return getattr(settings_at(spec, owner), key, None) is not None
