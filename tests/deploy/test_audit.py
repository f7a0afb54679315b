"""What the audit of locked packages says of what an index answers."""

from importlib.util import module_from_spec, spec_from_file_location

import pytest

from tests.deploy.reading import ROOT

SPEC = spec_from_file_location("audit", ROOT / ".ci" / "audit.py")
AUDIT = module_from_spec(SPEC)
SPEC.loader.exec_module(AUDIT)


def package(*fixes, name="a"):
    vulnerability = {"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": list(fixes)}
    return {"name": name, "version": "1.0", "vulns": [vulnerability]}


@pytest.mark.parametrize(
    ("packages", "allowed", "line", "code"),
    [
        ([{"name": "a", "version": "1.0", "vulns": []}], {}, "1 packages, 0 known", 0),
        ([package("1.1")], {}, "a 1.0: PYSEC-1 CVE-1: mended in 1.1", 1),
        ([package()], {}, "a 1.0: PYSEC-1 CVE-1: no fix", 0),
        ([package("1.1")], {"CVE-1": "not used"}, "PYSEC-1 CVE-1: allowed: not used", 0),
        ([package("1.1"), package("2", name="b")], {"x": "y"}, "2 packages, 2 known", 1),
        ([{"name": "a", "skip_reason": "not found"}], {}, "0 packages, 0 known", 0),
    ],
)
def test_verdict(packages, allowed, line, code):
    lines, found = AUDIT.verdict(packages, allowed)
    assert line in "\n".join(lines)
    assert found == code


def test_an_index_without_data_is_said(monkeypatch):
    asked = []
    monkeypatch.setattr(AUDIT, "report", lambda text: asked.append(text) or [])
    assert AUDIT.audit("a==1 \\\n    --hash=x\nb==2\n") == (
        ["no audit: the package index gives no data on vulnerabilities"],
        0,
    )
    assert asked == ["a==1 \\\n    --hash=x"]


def test_every_allowed_one_has_a_reason():
    assert all(AUDIT.ALLOWED.values())
