"""Dead letters in Dagster: a job that puts them through their pipeline again."""

from collections import Counter

import dagster as dg

from kaflow_dagster.assets.translator import KaflowTranslator
from kaflow_dagster.assets.views import PipelineView, ProjectView
from kaflow_dagster.runs.background import failure
from kaflow_dagster.runs.names import dagster_name
from kaflow_engine.api.errors import KaflowError
from kaflow_engine.api.outputs import LETTER_COLUMNS
from kaflow_engine.api.project import with_brought

_OPTIONS = {
    "where": dg.Field(
        dg.Noneable(str),
        default_value=None,
        is_required=False,
        description=f"SQL over {', '.join(LETTER_COLUMNS)}; without it, all that were not redriven "
        "yet.",
    ),
    "dry_run": dg.Field(
        bool, default_value=False, is_required=False, description="Only count them."
    ),
}


def build_redrive_job(
    pipeline: PipelineView, project: ProjectView, translator: KaflowTranslator
) -> dg.JobDefinition:
    """Return the job that redrives dead letters of a pipeline, and reports them on their topic.

    Args:
        pipeline: A sound one, whose dead letters go to a topic.
        project: Where it is read again.
        translator: Names the asset of the topic.
    """
    assert pipeline.explanation is not None
    name, topic = pipeline.name, pipeline.explanation.dead_letters
    assert topic is not None
    key = translator.topic_key(topic)

    @dg.op(name=dagster_name("dead_letters", name), config_schema=_OPTIONS, out=dg.Out(dg.Nothing))
    def again(context: dg.OpExecutionContext) -> None:
        # a code location loads without a Kafka client
        from kaflow_engine.api.outputs import (
            Letter,
            choose_letters,
            find_letters,
            redrivable,
            redrive,
        )

        where: str | None = context.op_config["where"]
        try:
            config = project.load_config()
            spec = project.load(name, config)
            config = with_brought(config, [spec])
            sent: list[Letter] = []
            if not context.op_config["dry_run"]:
                sent = redrive(spec, config, where)
            letters = find_letters(spec, config)
            found = choose_letters(letters, where)
            left = len(redrivable(spec, config, found))
        except KaflowError as error:
            raise failure(error) from None
        context.log.info(f"{len(sent)} redriven, {left} of {len(found)} could be")
        reasons = Counter((each.phase, each.error) for each in letters)
        context.log_event(
            dg.AssetMaterialization(
                asset_key=key,
                metadata={
                    "kaflow/redriven": dg.MetadataValue.int(len(sent)),
                    "kaflow/left": dg.MetadataValue.int(left),
                    "kaflow/letters": dg.MetadataValue.int(len(letters)),
                    "kaflow/reasons": dg.MetadataValue.table(
                        [
                            dg.TableRecord({"phase": phase, "error": error, "letters": count})
                            for (phase, error), count in reasons.most_common()
                        ],
                        schema=dg.TableSchema(
                            columns=[
                                dg.TableColumn("phase", "string"),
                                dg.TableColumn("error", "string"),
                                dg.TableColumn("letters", "int"),
                            ]
                        ),
                    ),
                },
            )
        )

    @dg.job(
        name=dagster_name("redrive", name),
        description=f"Puts dead letters of pipeline `{name}` through it again, each once.",
        executor_def=dg.in_process_executor,
    )
    def job() -> None:
        again()

    return job
