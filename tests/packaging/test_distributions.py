"""The sdist and the plain wheel: their files, their metadata, the same bytes again."""

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path

import pytest

from sharecons import __version__

pytestmark = pytest.mark.slow("builds packages")

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAME = f"sharecons-{__version__}"
WHEEL = f"{NAME}-py3-none-any.whl"
INFO = f"{NAME}.dist-info"
GENERATED = "__pycache__"

BUILD = "from hatch_build import *; build_wheel({0!r}); build_sdist({0!r})"


def build(place: Path) -> Path:
    environment = {**os.environ, "SHARECONS_PURE": "1"}
    command = [sys.executable, "-c", BUILD.format(str(place))]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return place


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def wheel(built) -> set[str]:
    return set(zipfile.ZipFile(built / WHEEL).namelist())


@pytest.fixture(scope="module")
def sdist(built) -> set[str]:
    with tarfile.open(built / f"{NAME}.tar.gz") as archive:
        return {name.removeprefix(f"{NAME}/") for name in archive.getnames()}


@pytest.fixture(scope="module")
def metadata(built) -> Message:
    text = zipfile.ZipFile(built / WHEEL).read(f"{INFO}/METADATA")
    return email.message_from_bytes(text)


def files_below(*directories: str) -> set[str]:
    return {
        str(path.relative_to(ROOT))
        for directory in directories
        for path in (ROOT / directory).rglob("*")
        if path.is_file() and GENERATED not in path.parts and path.suffix != ".so"
    }


def test_wheel_contains_the_packages_their_metadata_and_no_other_file(wheel):
    written = {
        f"{INFO}/{name}"
        for name in (
            "METADATA",
            "RECORD",
            "WHEEL",
            "entry_points.txt",
            "licenses/LICENSE",
            "licenses/docs/licenses/mypyc.txt",
        )
    }

    assert files_below("sharecons", "pyspark_sharecons") | written == wheel


@pytest.mark.parametrize(
    "file",
    [
        "sharecons/py.typed",
        "pyspark_sharecons/py.typed",
        "sharecons/dashboard/templates/overview.html",
        "sharecons/dashboard/static/live.js",
        "sharecons/dashboard/static/style.css",
    ],
)
def test_wheel_contains_files_that_are_not_python(wheel, file):
    assert file in wheel


def test_sdist_contains_the_files_that_the_build_and_the_tests_read(sdist):
    directories = ("sharecons", "pyspark_sharecons", "examples", "tests", "docs")
    files = {
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "README.md",
        "SECURITY.md",
        "hatch_build.py",
        "pyproject.toml",
        "tox.ini",
    }

    assert files_below(*directories) | files | {"PKG-INFO", ".gitignore"} == sdist


def test_packages_of_the_same_tree_have_the_same_bytes(built, tmp_path):
    again = build(tmp_path)

    for package in (WHEEL, f"{NAME}.tar.gz"):
        assert (again / package).read_bytes() == (built / package).read_bytes()


def test_metadata_has_what_an_index_shows(metadata):
    assert __version__ == metadata["Version"]
    assert "Apache-2.0" == metadata["License-Expression"]
    assert "The sharecons developers" == metadata["Author"]
    assert ">=3.11" == metadata["Requires-Python"]
    assert "text/markdown" == metadata["Description-Content-Type"]
    assert {"Changelog", "Documentation", "Issues", "Source"} == {
        url.partition(", ")[0] for url in metadata.get_all("Project-URL", [])
    }


def test_description_has_no_link_that_depends_on_the_page(metadata):
    text = metadata.get_payload()
    targets = re.findall(r"\]\(([^)\s]+)|^\[[^\]]+\]: (\S+)", text, re.M)

    assert targets
    assert [] == [
        target
        for pair in targets
        for target in pair
        if target and not re.match("https?://|#", target)
    ]


def test_extra_all_contains_every_extra_that_applications_use():
    extras = PROJECT["optional-dependencies"]
    [combined] = extras["all"]
    chosen = set(re.findall(r"[\w-]+", combined.partition("[")[2]))

    left_out = {"all", "arrow", "bench", "docker", "kafka", "spark", "test"}
    assert set(extras) - left_out == chosen
