"""What the audit says of packages and jars; it says nothing good of what it does not know."""

import subprocess
import sys
import tomllib
from datetime import date, timedelta
from importlib.util import module_from_spec, spec_from_file_location
from types import SimpleNamespace

import pytest

from tests.deploy.reading import ROOT

SPEC = spec_from_file_location("audit", ROOT / ".ci" / "audit.py")
AUDIT = module_from_spec(SPEC)
sys.modules["audit"] = AUDIT  # where dataclasses look
SPEC.loader.exec_module(AUDIT)

LIST = tomllib.loads((ROOT / AUDIT.LIST).read_text())
JARS = tomllib.loads((ROOT / AUDIT.JARS).read_text())
LOCK = r"""
a==1.0 \
    --hash=sha256:00
B.c[x]==2.0 ; sys_platform == "win32" \
    --hash=sha256:01
"""
SOUND = {("a", "1.0"): [], ("b-c", "2.0"): []}
ALLOWED = {"CVE-1": {"date": date(2026, 1, 1), "reason": "not used"}}


def vulnerability(*fixes):
    return {"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": list(fixes)}


@pytest.mark.parametrize(
    ("answers", "allowed", "line", "code"),
    [
        (SOUND, {}, "r.lock: 2 audited, 0 known vulnerabilities", 0),
        (
            {**SOUND, ("a", "1.0"): [vulnerability("1.1")]},
            {},
            "r.lock: a 1.0: PYSEC-1 CVE-1: fixed in 1.1",
            1,
        ),
        ({**SOUND, ("a", "1.0"): [vulnerability()]}, {}, "a 1.0: PYSEC-1 CVE-1: no fix", 1),
        (
            {**SOUND, ("a", "1.0"): [vulnerability()]},
            ALLOWED,
            "a 1.0: PYSEC-1 CVE-1: allowed 2026-01-01: not used",
            0,
        ),
        (
            {**SOUND, ("a", "1.0"): [vulnerability(), {**vulnerability(), "aliases": []}]},
            ALLOWED,
            "r.lock: 2 audited, 2 known vulnerabilities",
            1,
        ),
        ({("a", "1.0"): []}, {}, "error: not audited: r.lock: no data on 1: b-c 2.0", 1),
        ({}, {}, "error: not audited: r.lock: no data on 2: a 1.0, b-c 2.0", 1),
    ],
)
def test_verdict(answers, allowed, line, code):
    outcome = AUDIT.of_lock("r.lock", LOCK, answers)
    lines, found = AUDIT.verdict([outcome], allowed, lenient=False)
    assert line in "\n".join(lines)
    assert found == code


@pytest.mark.parametrize(
    ("answers", "code", "warns"),
    [
        ({}, 0, True),
        ({("a", "1.0"): []}, 0, True),
        (SOUND, 0, False),
        ({("a", "1.0"): [vulnerability()]}, 1, True),
        ({**SOUND, ("a", "1.0"): [vulnerability()]}, 1, False),
    ],
)
def test_only_missing_data_is_a_warning_when_lenient(answers, code, warns):
    outcome = AUDIT.of_lock("r.lock", LOCK, answers)
    lines, found = AUDIT.verdict([outcome], {}, lenient=True)
    assert found == code
    assert ("warning: not audited: r.lock: " in "\n".join(lines)) == warns
    assert "error" not in "\n".join(lines)


class Index:
    """Answers in place of pip-audit: as it does, or not at all."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def run(self, command, timeout, **options):
        file = command[command.index("--requirement") + 1]
        with open(file) as lines:
            self.asked.append(lines.read().split())
        answer = self.answers.pop(0)
        if answer is None:
            raise subprocess.TimeoutExpired(command, timeout)
        return SimpleNamespace(stdout=answer)


def said(*packages):
    vulns = ", ".join(
        f'{{"name": "{name}", "version": "{version}", {rest}}}' for name, version, rest in packages
    )
    return f'{{"dependencies": [{vulns}], "fixes": []}}'


GOOD, NONE = '"vulns": []', '"skip_reason": "not found"'


@pytest.mark.parametrize(
    ("answers", "known"),
    [
        ([said(("a", "1.0", GOOD)), said(("a", "1.0", GOOD), ("B_C", "2.0", GOOD))], set(SOUND)),
        (
            [said(("a", "1.0", GOOD)), said(("a", "1.0", GOOD), ("b.c", "2.0", NONE))],
            {("a", "1.0")},
        ),
        ([said(("a", "1.0", NONE))], set()),
        ([said(("a", "1.0", GOOD)), None], set()),  # it has counted as "0 known vulnerabilities"
        ([None], set()),
        ([""], set()),
    ],
)
def test_who_does_not_answer_knows_nothing(monkeypatch, answers, known):
    index = Index(*answers)
    monkeypatch.setattr(AUDIT.subprocess, "run", index.run)
    assert set(AUDIT.ask(AUDIT.pins(LOCK))) == known
    assert index.asked[0] == ["a==1.0"]
    assert index.answers == []


def test_a_package_in_two_versions_is_asked_for_in_two_questions(monkeypatch):
    index = Index(said(("a", "1", GOOD)), said(("a", "1", GOOD)), said(("a", "2", GOOD)))
    monkeypatch.setattr(AUDIT.subprocess, "run", index.run)
    assert set(AUDIT.ask([("a", "2"), ("b", "1"), ("a", "1")])) == {("a", "1"), ("a", "2")}
    assert index.asked[1:] == [["a==1", "b==1"], ["a==2"]]


def test_every_lock_file_is_read_whole():
    files = {path.name: path.read_text() for path in ROOT.glob(AUDIT.LOCKS)}
    assert {"requirements.lock", "requirements-java.lock", "requirements-image.lock"} < set(files)
    assert set(files) == {path.name for path in ROOT.glob("*.lock")}
    for text in files.values():
        named = [line for line in text.splitlines() if line and line[0] not in " #"]
        assert len(AUDIT.pins(text)) == len(named)


@pytest.mark.parametrize(
    ("version", "first", "end", "inside"),
    [
        ("3.9.1", "2.8.0", "3.9.2", True),
        ("3.9.2", "2.8.0", "3.9.2", False),
        ("4.0.1", "2.8.0", "3.9.2", False),
        ("3.10.0", "2.8.0", "3.9.2", False),
        ("2.8", "2.8.0", "3.9.2", True),
        ("1.5.6-10", "1.5.6-2", "1.5.6-11", True),
        ("2.6.13.Final", "2.0", "", True),
        ("2.13.4.1", "0", "2.13.4.2", True),
    ],
)
def test_versions_of_jars(version, first, end, inside):
    assert AUDIT.is_between(version, first, end) == inside


def jars(today=LIST["compared"], known=LIST, more=None):
    return AUDIT.of_jars({**JARS, "more": more or {}}, known, today)


def test_the_list_of_jars_is_complete_and_finds_nothing_that_is_not_allowed():
    outcome = jars()
    assert outcome.missing == ()
    assert AUDIT.verdict([outcome], LIST["allowed"], lenient=False)[1] == 0
    kept = {":".join(name.split(":")[:2]) for bundle in JARS.values() for name in bundle}
    assert set(LIST["jars"]) == kept
    found = {name for each in outcome.findings for name in each.ids}
    assert set(LIST["allowed"]) <= found  # what needs no reason any longer goes


@pytest.mark.parametrize(
    "coordinate",
    ["org.apache.kafka:kafka-clients:3.9.1", "org.apache.logging.log4j:log4j-core:2.14.1"],
)
def test_a_jar_with_an_advisory_fails(coordinate):
    outcome = jars(more={coordinate: "00"})
    assert [each for each in outcome.findings if each.what in coordinate.replace(":", " ")]
    assert AUDIT.verdict([outcome], LIST["allowed"], lenient=True)[1] == 1


def test_a_jar_that_is_not_listed_and_a_list_that_is_old_are_no_data():
    assert jars(more={"a:new:1": "00"}).missing == ("new 1",)
    old = jars(LIST["compared"] + timedelta(days=AUDIT.OLDEST_DAYS + 1))
    assert (old.audited, old.findings) == (0, ())
    assert len(old.missing) > 40
    assert AUDIT.verdict([old], LIST["allowed"], lenient=False)[1] == 1


def test_every_allowed_one_has_a_reason_and_a_date():
    for each in LIST["allowed"].values():
        assert set(each) == {"reason", "date"}
        assert each["reason"]
        assert isinstance(each["date"], date)


@pytest.mark.parametrize(("answers", "codes"), [(SOUND, (0, 0)), ({}, (1, 0))])
def test_a_good_result_is_kept_for_the_day_and_no_other(monkeypatch, tmp_path, answers, codes):
    monkeypatch.chdir(tmp_path)
    for path in (AUDIT.LIST, AUDIT.JARS):
        path.parent.mkdir(parents=True)
        path.write_text((ROOT / path).read_text())
    (tmp_path / "requirements.lock").write_text(LOCK)
    asked = []
    monkeypatch.setattr(AUDIT, "ask", lambda wanted: asked.append(1) or answers)
    monkeypatch.setattr(AUDIT, "OLDEST_DAYS", 10**6)
    assert AUDIT.main([]) == codes[0]
    assert AUDIT.main(["--lenient"]) == codes[1]
    assert len(asked) == (1 if answers else 2)


def test_lint_is_lenient_and_the_audit_is_not():
    calls = [line for line in (ROOT / "Makefile").read_text().splitlines() if "audit.py" in line]
    assert [line.partition(".ci/audit.py")[2] for line in calls] == [" --lenient", ""]
