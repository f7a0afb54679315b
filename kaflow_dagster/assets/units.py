"""What runs together: a pipeline, or all of a group."""

from dataclasses import dataclass
from hashlib import sha256

from kaflow_dagster.assets.views import PipelineView, ProjectView


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamUnit:
    """What one run streams: a pipeline, or all of a group."""

    name: str
    pipelines: tuple[PipelineView, ...]

    @property
    def version(self) -> str:
        """What tells two versions of it apart."""
        if len(self.pipelines) == 1:
            return self.pipelines[0].version
        texts = [f"{pipeline.name}:{pipeline.version}" for pipeline in self.pipelines]
        return sha256("\n".join(texts).encode()).hexdigest()[:12]

    @property
    def state(self) -> str | None:
        """The stable id of the one pipeline; None where there are several, or it is broken."""
        about = self.pipelines[0].explanation if len(self.pipelines) == 1 else None
        return about.id if about else None

    @property
    def problem(self) -> str | None:
        """Why it cannot run."""
        return next((p.problem for p in self.pipelines if p.problem is not None), None)

    @property
    def ends(self) -> bool:
        """Whether a run of it ends by itself."""
        return all(pipeline.ends for pipeline in self.pipelines)

    @property
    def about(self) -> str:
        """What it is, for a sentence."""
        if [pipeline.name for pipeline in self.pipelines] == [self.name]:
            return f"pipeline `{self.name}`"
        names = ", ".join(f"`{pipeline.name}`" for pipeline in self.pipelines)
        return f"group `{self.name}`: {names}"


def units_of(project: ProjectView) -> list[StreamUnit]:
    """Return what runs together; of a broken file it is not known, so it stands alone."""
    found: dict[str, list[PipelineView]] = {}
    for pipeline in project.pipelines:
        found.setdefault(pipeline.group or pipeline.name, []).append(pipeline)
    return [StreamUnit(name=name, pipelines=tuple(each)) for name, each in found.items()]
