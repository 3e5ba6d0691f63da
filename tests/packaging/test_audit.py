"""The report of the audit: vulnerable packages, and no advisories at all."""

from tests.packaging.audit import summarize

SAFE = {"name": "anyio", "version": "4.11.0", "vulns": []}
SKIPPED = {"name": "kio", "skip_reason": "not found"}
VULNERABLE = {
    "name": "jinja2",
    "version": "3.1.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["3.1.6"]}],
}


def test_vulnerable_package_is_reported_with_its_fix():
    lines, is_vulnerable = summarize([SAFE, VULNERABLE, SKIPPED], 3)

    assert is_vulnerable
    assert [
        "jinja2 3.1.0: PYSEC-1, fixed in 3.1.6",
        "2 of 3 packages audited: 1 known issues",
    ] == lines


def test_audit_without_advisories_is_one_line_and_no_failure():
    for found in ([], [SKIPPED]):
        lines, is_vulnerable = summarize(found, 2)

        assert not is_vulnerable
        assert ["not audited: no advisories could be read for 2 packages"] == lines
