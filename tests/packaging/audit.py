"""Compare the packages that `sharecons[all]` installs with known vulnerabilities.

    python tests/packaging/audit.py

Prints each vulnerability, and exits with 1 if there is one. If no advisory can be
read, as without a connection to the advisory service, one line says so, and the exit
code is 0. Needs pip-audit beside it.
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[2]
RESOLVE = ["-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
AUDIT = ["-m", "pip_audit", "--no-deps", "--disable-pip", "--progress-spinner=off"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False
    )


def packages() -> list[str]:
    """Return the packages that pip would install now, as requirements."""
    resolved = run(*RESOLVE, "--report", "-", f"{ROOT}[all]")
    if resolved.returncode:
        raise SystemExit(resolved.stderr)
    found = [item["metadata"] for item in json.loads(resolved.stdout)["install"]]
    return [
        f"{each['name']}=={each['version']}"
        for each in found
        if each["name"] != "sharecons"
    ]


def audit(requirements: list[str]) -> list[dict[str, Any]]:
    """Return each package with its vulnerabilities, or its `skip_reason`."""
    with TemporaryDirectory() as place:
        file = Path(place, "requirements.txt")
        file.write_text("\n".join(requirements))
        audited = run(*AUDIT, "--format=json", "--requirement", str(file))
    # Without a connection it prints no JSON, only a traceback.
    found = json.loads(audited.stdout or '{"dependencies": []}')
    return list(found["dependencies"])


def summarize(found: list[dict[str, Any]], count: int) -> tuple[list[str], bool]:
    """Return what to print, and whether a package is vulnerable."""
    read = [each for each in found if "skip_reason" not in each]
    lines = [
        f"{each['name']} {each['version']}: {known['id']}, fixed in "
        f"{', '.join(known['fix_versions']) or 'no version'}"
        for each in read
        for known in each["vulns"]
    ]
    if not read:
        summary = f"not audited: no advisories could be read for {count} packages"
    else:
        summary = f"{len(read)} of {count} packages audited: {len(lines)} known issues"
    return [*lines, summary], bool(lines)


def main() -> None:
    requirements = packages()
    lines, is_vulnerable = summarize(audit(requirements), len(requirements))
    sys.stdout.write("\n".join(lines) + "\n")
    raise SystemExit(is_vulnerable)


if __name__ == "__main__":
    main()
