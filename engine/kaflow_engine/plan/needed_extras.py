"""Which optional parts of the project pipelines need, and where their files say so."""

from collections.abc import Iterable, Iterator, Mapping

from kaflow_engine.errors import Location
from kaflow_engine.extras import EXTRAS
from kaflow_engine.model.relations.transform_specs import ScriptSpec
from kaflow_engine.model.sources.hybrid_specs import with_phases
from kaflow_engine.model.specs import PipelineSpec

Needs = Mapping[str, tuple[Location, ...]]
"""Name of an extra → the outputs, sources, phases of sources and relations that need it."""


def needed_extras(specs: Iterable[PipelineSpec]) -> Needs:
    """Return what pipelines need, by extra and in the order of their files."""
    found: dict[str, set[Location]] = {}
    for spec in specs:
        for name, at in _of_pipeline(spec):
            found.setdefault(name, set()).add(at)
    return {name: tuple(sorted(places)) for name, places in found.items()}


def _of_pipeline(spec: PipelineSpec) -> Iterator[tuple[str, Location]]:
    outputs = [(write.sink.kind, spec.place(*write.at)) for write in spec.writes if write.sink]
    sources = [(each.type, spec.place(*path)) for path, each in with_phases(spec.sources)]
    relations = [
        (f"{each.type} {each.language}", spec.place("relations", name))
        for name, each in spec.transforms.items()
        if isinstance(each, ScriptSpec)
    ]
    if spec.dead_letters.type is not None:
        outputs.append((spec.dead_letters.type, spec.place("dead_letters")))
    for extra in EXTRAS.values():
        yield from ((extra.name, at) for kind, at in relations if kind in extra.relations)
        yield from ((extra.name, at) for kind, at in outputs if kind in extra.outputs)
        yield from ((extra.name, at) for kind, at in sources if kind in extra.sources)
