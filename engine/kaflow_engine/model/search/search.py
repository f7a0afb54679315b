"""Looks for the files of pipelines, and gives each to the front end that knows it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.configuration.load_config import FILES
from kaflow_engine.model.files.streamling_files import JSON, may_be_streamling
from kaflow_engine.model.files.yaml_file import Rewrite, read_text, read_yaml
from kaflow_engine.model.front_ends import DEFAULT, FRONT_ENDS, front_end_of
from kaflow_engine.model.pipelines.contract import FrontEnd, Role, SourceFile
from kaflow_engine.model.pipelines.front_end import SUFFIXES
from kaflow_engine.model.pipelines.kinds import holds_configuration


@dataclass(slots=True, kw_only=True)
class Search:
    """The files found so far, by front end; a file is read once, however often it is reached."""

    variables: Mapping[str, str]
    configuration: Path | None
    rewrite: Rewrite | None
    files: dict[str, list[SourceFile]] = field(default_factory=dict[str, list[SourceFile]])
    mistakes: list[ModelError] = field(default_factory=list[ModelError])
    unused: list[Path] = field(default_factory=list[Path])
    seen: dict[Path, bool] = field(default_factory=dict[Path, bool])
    """File → whether it holds a pipeline."""

    def folder(self, folder: Path) -> None:
        """Take all files of a folder."""
        holds_any = False
        for file in sorted(project_files(folder)):
            holds_any |= self._take(file, "found")
        if not holds_any:
            examples = ", ".join(end.example for end in FRONT_ENDS)
            hint = f"files of pipelines have names such as {examples}"
            at = Location(str(folder))
            self.mistakes.append(ModelError("no pipeline in this folder", at, hint))

    def file(self, file: Path) -> None:
        """Take a file that is named."""
        if self._is_configuration(file):
            at = Location(str(file))
            hint = "name the files or folders of pipelines behind it"
            self.mistakes.append(ModelError("this is the configuration, not a pipeline", at, hint))
        else:
            self._take(file, "named")

    def near(self, file: Path) -> None:
        """Take a file that no one asked for; what is wrong in it does not matter."""
        if not self._is_configuration(file):
            self._take(file, "near")

    def _take(self, path: Path, standing: Literal["named", "found", "near"]) -> bool:
        """Give a file to the front end that knows it; return whether it holds a pipeline."""
        real = path.resolve()
        if self.seen.get(real):
            return True
        claiming = _claiming(path)
        if claiming is not None:
            return self._keep(path, SourceFile(path=path, standing=standing), claiming, "pipeline")
        file = self._read(path, standing)
        root = file.document.root if file.document else None
        if standing == "found" and (
            self._is_configuration(path) or (root is not None and holds_configuration(root))
        ):
            self.unused.append(path)
            return False
        roles: dict[str, Role] = {
            end.name: role for end in _candidates(path) if (role := end.role(file))
        }
        if not roles and standing == "named":
            roles = {DEFAULT.name: "pipeline"}
        if len(roles) > 1 and file.wanted:
            self.mistakes.append(_ambiguous(path, list(roles)))
        if not roles:
            return False
        if len(roles) > 1:
            self.seen[real] = True
            return True
        ((name, role),) = roles.items()
        return self._keep(path, file, name, role)

    def _keep(self, path: Path, file: SourceFile, name: str, role: Role) -> bool:
        real = path.resolve()
        if real not in self.seen:
            self.files.setdefault(name, []).append(file)
        self.seen[real] = role == "pipeline"
        return role == "pipeline"

    def _read(self, path: Path, standing: Literal["named", "found", "near"]) -> SourceFile:
        data = path.suffix == JSON and standing != "named" and not may_be_streamling(path)
        if data or (_candidates(path) and not path.name.endswith((*SUFFIXES, JSON))):
            return SourceFile(path=path, standing=standing)
        try:
            whole = front_end_of(path.name) is DEFAULT or path.suffix == JSON
            document = read_yaml(path, self.variables, rewrite=self.rewrite if whole else None)
        except ModelError as mistake:
            return SourceFile(path=path, standing=standing, mistake=mistake)
        return SourceFile(path=path, standing=standing, document=document)

    def _is_configuration(self, file: Path) -> bool:
        return file.name in FILES or file.resolve() == self.configuration


def _claiming(path: Path) -> str | None:
    """Return the front end that knows a file by its text; None: one must look at what it says."""
    candidates = _candidates(path)
    if not path.name.endswith(SUFFIXES) or len(candidates) < 2:
        return None
    try:
        text = read_text(path)
    except ModelError:
        return None  # said by who reads it
    return next((end.name for end in candidates if end.claims(text)), None)


def _ambiguous(path: Path, names: Sequence[str]) -> ModelError:
    return ModelError(
        f"this could be each of: {', '.join(names)}",
        Location(str(path)),
        "remove the keys that belong to the other one",
    )


def project_files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder that may be those of a front end."""
    visited: set[Path] = set()
    for parent, folders, names in os.walk(folder, followlinks=True):
        real = Path(parent).resolve()
        if real in visited:
            folders.clear()  # a link leads back here
            continue
        visited.add(real)
        # A volume mounted by Kubernetes holds every file a second time in `..data`.
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            file = Path(parent) / name
            if _candidates(file):
                yield file


def _candidates(file: Path) -> list[FrontEnd]:
    """Return the front ends with the longest ending that the name of a file has."""
    found = {
        end: max((len(each) for each in end.endings if file.name.endswith(each)), default=0)
        for end in FRONT_ENDS
    }
    longest = max(found.values())
    return [end for end, length in found.items() if length == longest > 0]
