"""A project of pipelines as a Dagster component: read once, loaded from what was read."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import dagster as dg
from dagster.components import DefsStateConfig, DefsStateConfigArgs, ResolvedDefsStateConfig
from dagster.components.utils.translation import TranslationFn, TranslationFnResolver

from kaflow_dagster.assets.translator import KaflowTranslator, Props
from kaflow_dagster.assets.views import ProjectView, view_project
from kaflow_dagster.build import defs_of
from kaflow_dagster.streams.outputs import NEWEST
from kaflow_engine.api.errors import ModelError


def _template_variables(props: Props) -> dict[str, object]:
    """Return what `translation:` may speak of in its templates."""
    return {"props": props, "name": props.name}


@dataclass
class KaflowProjectComponent(dg.StateBackedComponent, dg.Resolvable):
    """Topics and streams of a project as assets, and a sensor that keeps each stream running.

    What the files say is read when the component's state is refreshed: by `dg dev` at every
    load, elsewhere by `dg utils refresh-defs-state` when an image is built. Override
    `get_asset_spec`, or set `translation`, to say what assets look like.
    """

    paths: list[str]
    """Pipeline files and folders; start them with `{{ context.project_root }}`."""
    config: str | None = None
    """The configuration file; None: defaults and the environment."""
    pyspark: str | None = None
    """The key of a LazyPySparkResource of dagster-pyspark with the Spark settings of backfills."""
    newest_rows: int = NEWEST
    """So many rows of each topic and table are shown with every report of its stream, and kept in
    Dagster's storage; 0: none."""
    translation: (
        Annotated[TranslationFn[Props], TranslationFnResolver[Props](_template_variables)] | None
    ) = None
    """Changes to assets: attributes as in Dagster, with the template variables name and props."""
    defs_state: ResolvedDefsStateConfig = field(
        default_factory=DefsStateConfigArgs.local_filesystem
    )

    @property
    def defs_state_config(self) -> DefsStateConfig:
        """Where Dagster keeps the state."""
        names = ",".join(Path(path).name for path in self.paths)
        return DefsStateConfig.from_args(self.defs_state, default_key=f"KaflowProject[{names}]")

    def get_asset_spec(self, props: Props) -> dg.AssetSpec:
        """Return the asset of a topic, or of the running of a pipeline."""
        return KaflowTranslator.get_asset_spec(_Translator(self), props)

    def write_state_to_path(self, state_path: Path) -> None:
        """Read the project."""
        config = Path(self.config) if self.config is not None else None
        project = view_project([Path(path) for path in self.paths], config)
        state_path.write_text(project.to_json(), encoding="utf-8")

    def build_defs_from_state(
        self, context: dg.ComponentLoadContext, state_path: Path | None
    ) -> dg.Definitions:
        """Return the definitions of a project that has been read.

        Raises:
            ModelError: It has not been read, or by another version of this package.
        """
        how = "run `dg utils refresh-defs-state` when the image is built"
        if state_path is None:
            raise ModelError("the project has not been read yet", hint=how)  # not an empty page
        try:
            project = ProjectView.of_json(state_path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ModelError("the project was read by another version", hint=how) from error
        return defs_of(
            project, _Translator(self), pyspark=self.pyspark, newest_rows=self.newest_rows
        )


class _Translator(KaflowTranslator):
    """What the component says about assets."""

    def __init__(self, component: KaflowProjectComponent) -> None:
        self._component = component

    def get_asset_spec(self, props: Props) -> dg.AssetSpec:
        spec = self._component.get_asset_spec(props)
        translation = self._component.translation
        return translation(spec, props) if translation else spec
