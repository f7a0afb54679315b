"""`kaflow test`: run case files."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from kaflow_engine.cli.options import (
    config_option,
    json_option,
    paths_argument,
    with_config,
)
from kaflow_engine.cli.output import print_json
from kaflow_engine.errors import KaflowError, ModelError
from kaflow_engine.masking import without_secrets
from kaflow_engine.model.configuration.load_config import find_config, load_config
from kaflow_engine.model.files.variables import variables_of_authors
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.testing.cases.cases import CaseResult, run_case
from kaflow_engine.testing.cases.cuts import Cuts
from kaflow_engine.testing.cases.executor import EXECUTORS, Executor, executor_called
from kaflow_engine.testing.cases.files import find_cases, load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings
from kaflow_engine.testing.cases.report import report_lines, result_data
from kaflow_engine.testing.cases.specs import Case

NARROWEST, WIDEST = 80, 160


class CutsType(click.ParamType[Cuts]):
    """`given`, `each`, `all` or `random:N`."""

    name = "cuts"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Cuts:
        try:
            return Cuts.of(str(value))
        except KaflowError as error:
            self.fail(f"{error.message}; write {error.hint}", param, ctx)


@click.command("test")
@paths_argument
@click.option(
    "--executor",
    type=click.Choice(sorted(EXECUTORS)),
    default="local",
    show_default=True,
    help="What runs the batches.",
)
@click.option(
    "--cuts",
    type=CutsType(),
    default="given",
    metavar="given|each|all|random:N",
    help="How records are cut into batches; default: as each case says.",
)
@click.option("--replay", is_flag=True, help="Run every batch twice; the results must be equal.")
@click.option(
    "--project",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder of the pipelines that cases name; default: the nearest one upwards.",
)
@config_option
@json_option
def command(
    paths: tuple[Path, ...],
    executor: str,
    cuts: Cuts,
    replay: bool,
    project: Path | None,
    config_path: Path | None,
    as_json: bool,
) -> None:
    """Run the cases in files, and in folders that are searched for them."""
    paths, config_path = with_config(paths, config_path)
    around = Surroundings(project=project, config_path=config_path or find_config(Path()))
    config = load_config(around.config_path)
    variables = variables_of_authors(config.env, config.file)
    cases = _read(find_cases(paths), variables)
    chosen = executor_called(executor)
    try:
        found = list(_run(cases, chosen, cuts, replay, around, quiet=as_json))
    finally:
        chosen.close()
    failed = sum(not result.passed for result in found)
    if as_json:
        counts = {"passed": len(found) - failed, "failed": failed}
        print_json({**counts, "cases": [result_data(result) for result in found]})
    else:
        click.echo(f"{len(found) - failed} passed, {failed} failed")
    if failed:
        raise click.exceptions.Exit(1)


def _read(files: Sequence[Path], variables: Mapping[str, str]) -> list[Case]:
    cases: list[Case] = []
    wrong: list[ModelError] = []
    for file in files:
        try:
            cases += load_cases(file, variables)
        except ModelError as error:
            wrong.append(error)
    raise_all(wrong)
    return cases


def _run(
    cases: Sequence[Case],
    executor: Executor,
    cuts: Cuts,
    replay: bool,
    around: Surroundings,
    quiet: bool,
) -> Iterator[CaseResult]:
    width = min(max(shutil.get_terminal_size((100, 24)).columns, NARROWEST), WIDEST)
    for case in cases:
        result = run_case(case, executor, cuts=cuts, replay=replay, around=around)
        if not quiet and result.passed:
            click.echo(f"ok      {case.name}")
        elif not quiet:
            click.echo(without_secrets("\n".join([*report_lines(result, width), ""])))
        yield result
