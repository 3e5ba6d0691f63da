"""The build keeps compiled libraries, and uses them only for the same sources."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
CONFIG = {"modules": ["sharecons/hot.py"], "compilers": ["mypy"]}


@pytest.fixture(scope="module")
def hatch_build() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "hatch_build", ROOT / "hatch_build.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    package = tmp_path / "sharecons"
    package.mkdir()
    (package / "hot.py").write_text("LIMIT = 1\n")
    return tmp_path


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    compiled = tmp_path / "lib"
    (compiled / "sharecons").mkdir(parents=True)
    (compiled / "sharecons" / "hot.so").write_bytes(b"code")
    return compiled


def test_libraries_of_the_same_sources_are_used_again(hatch_build, tree, compiled):
    cache = hatch_build.Cache(tree, CONFIG)
    assert not cache.is_current()

    cache.store(compiled)

    assert hatch_build.Cache(tree, CONFIG).is_current()
    assert b"code" == (cache.place / "sharecons" / "hot.so").read_bytes()


def change_source(tree, config):
    (tree / "sharecons" / "hot.py").write_text("LIMIT = 2\n")


def add_source(tree, config):
    (tree / "sharecons" / "cold.py").touch()


def change_modules(tree, config):
    config["modules"] = []


@pytest.mark.parametrize("change", [change_source, add_source, change_modules])
def test_libraries_of_other_sources_are_not_used(hatch_build, tree, compiled, change):
    config = dict(CONFIG)
    hatch_build.Cache(tree, config).store(compiled)

    change(tree, config)

    assert not hatch_build.Cache(tree, config).is_current()


def test_libraries_of_other_compiler_flags_are_not_used(
    hatch_build, tree, compiled, monkeypatch
):
    hatch_build.Cache(tree, CONFIG).store(compiled)

    monkeypatch.setenv("CFLAGS", "-O0")

    assert not hatch_build.Cache(tree, CONFIG).is_current()


def test_libraries_of_an_interrupted_copy_are_not_used(hatch_build, tree, compiled):
    cache = hatch_build.Cache(tree, CONFIG)
    cache.store(compiled)

    with pytest.raises(OSError):
        cache.store(compiled / "missing")

    assert not cache.is_current()


def test_new_libraries_replace_the_old_ones(hatch_build, tree, compiled):
    cache = hatch_build.Cache(tree, CONFIG)
    cache.store(compiled)
    (compiled / "sharecons" / "hot.so").rename(compiled / "sharecons" / "new.so")

    cache.store(compiled)

    assert ["new.so"] == [file.name for file in cache.place.rglob("*.so")]
