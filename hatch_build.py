"""The build backend: Hatchling, and a hook that compiles the hot modules with mypyc.

pyproject.toml lists these modules. They are typed Python and also run uncompiled:
without a C compiler, or with SHARECONS_PURE=1 in the environment, the wheel contains
only Python. With SHARECONS_COMPILE=1 a failed compilation is an error.

Compiled libraries are kept in build/compiled, so that the next installation from
the same tree, for example with an extra, does not compile again.
"""

import ast
import gc
import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Under pip, Hatchling offers no separate step for the metadata, and pip shows only
# "Preparing metadata" while the whole wheel is built. Our hook changes no metadata, so
# the steps can be separate: pip shows "Building wheel" while modules compile.
os.environ.pop("PIP_BUILD_TRACKER", None)
from hatchling.build import *  # noqa: F403

COMPILER_FLAGS: Final = (
    "--param=builtin-expect-probability=100",
    "-fvisibility=hidden",
    "-fno-plt",
)
"""For GCC; other compilers get the flags that they accept. Errors, for which mypyc's
code checks after each operation, do not happen, and no other library replaces our
functions. 11 % less CPU time per record."""


def is_set(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


class CompileHook(BuildHookInterface[Any]):
    """Adds compiled modules beside their Python."""

    _build: Path | None = None

    def dependencies(self) -> list[str]:
        if self._is_pure() or self._cache().is_current():
            return []
        return list(self.config["compilers"])

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        # An editable install runs the source, so that a change takes effect.
        if version == "editable" or self._is_pure():
            return
        cache = self._cache()
        place = cache.place if cache.is_current() else self._compile(cache)
        if place is None:
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for library in filter(Path.is_file, place.rglob("*")):
            inside = library.relative_to(place)
            build_data["force_include"][str(library)] = str(inside)

    def finalize(self, *_: Any) -> None:
        if self._build is not None:
            shutil.rmtree(self._build, ignore_errors=True)

    def _compile(self, cache: "Cache") -> Path | None:
        """Return the directory of the libraries; None if nothing could be compiled."""
        self._build = Path(mkdtemp(prefix="sharecons-build-"))
        try:
            compile_modules(Path(self.root), self.config["modules"], self._build)
        # Compilers raise many exceptions; mypy exits if it finds an error.
        except (Exception, SystemExit) as error:
            self.finalize()
            if is_set("SHARECONS_COMPILE"):
                raise
            self.app.display_warning(f"not compiled, plain Python instead: {error}")
            return None
        try:
            cache.store(self._build / "lib")
        except OSError:  # the tree is read-only
            return self._build / "lib"
        return cache.place

    def _cache(self) -> "Cache":
        return Cache(Path(self.root), self.config)

    def _is_pure(self) -> bool:
        return is_set("SHARECONS_PURE")


class Cache:
    """The libraries that were last compiled in this tree for this Python."""

    def __init__(self, root: Path, config: dict[str, Any]) -> None:
        flags = [os.environ.get(name) for name in ("CC", "CFLAGS", "LDFLAGS")]
        digest = sha256(repr((config["modules"], config["compilers"], flags)).encode())
        # The whole package: compiled code contains constants of modules it imports.
        for source in [*sorted((root / "sharecons").rglob("*.py")), Path(__file__)]:
            text = source.read_bytes()
            name = os.path.relpath(source, root)
            digest.update(f"{name} {len(text)}\n".encode())
            digest.update(text)
        self._key = digest.hexdigest()
        python = f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}"
        self.place = root / "build" / "compiled" / python
        self._note = self.place.parent / f"{python}.sha256"

    def is_current(self) -> bool:
        """Return whether `place` has the libraries of the present sources."""
        try:
            return self._note.read_text() == self._key
        except OSError:
            return False

    def store(self, compiled: Path) -> None:
        """Replace the libraries by the files below a directory."""
        self._note.unlink(missing_ok=True)
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(compiled, self.place)
        # Last: an interrupted copy does not count.
        self._note.write_text(self._key)


def compile_modules(root: Path, modules: list[str], place: Path) -> None:
    """Compile modules of the package to libraries below `place`/lib."""
    # Installed only if the build requested it, see `dependencies`.
    from mypyc.build import mypycify
    from pybind11.setup_helpers import ParallelCompile
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    class Build(build_ext):
        def build_extensions(self) -> None:
            flags = accepted_flags(self.compiler, place / "flags")
            for extension in self.extensions:
                # Not `+=`: mypyc's extensions share one list.
                extension.extra_compile_args = [*extension.extra_compile_args, *flags]
            super().build_extensions()

    os.chdir(root)
    # One C file per module, so that all cores compile.
    extensions = mypycify(
        # The types of other packages change nothing, so they need not be installed.
        ["--config-file=", "--ignore-missing-imports", *modules],
        opt_level="2",
        debug_level="0",
        group_name="sharecons",
        multi_file=True,
        target_dir=str(place / "c"),
    )
    # At exit, Python searches all objects for garbage several times: mypy leaves
    # millions, and 4 s pass.
    gc.freeze()
    docstrings = docstrings_of(root, modules)
    for written in (place / "c").rglob("*.c"):
        written.write_text(with_docstrings(written.read_text(), docstrings))
    command = Build(Distribution({"name": "sharecons", "ext_modules": extensions}))
    command.build_lib = str(place / "lib")
    command.build_temp = str(place / "temporary")
    command.ensure_finalized()
    with ParallelCompile():
        command.run()


def accepted_flags(compiler: Any, place: Path) -> list[str]:
    """Return the flags of COMPILER_FLAGS that the compiler accepts."""
    from setuptools.errors import CompileError

    if compiler.compiler_type != "unix":
        return []
    place.mkdir()
    empty = place / "empty.c"
    empty.write_text("int sharecons;\n")
    accepted = []
    for flag in COMPILER_FLAGS:
        with suppress(CompileError):
            # Each flag has a directory: an existing object is not compiled again.
            objects = str(place / str(len(accepted)))
            compiler.compile([str(empty)], objects, extra_postargs=["-Werror", flag])
            accepted.append(flag)
    return accepted


# mypyc drops docstrings, which `help()` and editors read at run time. So they are
# written into the C code of mypyc. `sharecons.batch.Batch.accept` is called
# `batch___Batch___accept` there, with as many parts of the module's name as make it
# unique.

_METHOD: Final = re.compile(
    r"(\(PyCFunction\)CPyPy_(\w+),\s*[A-Z_| ]+,\s*PyDoc_STR\()"
    r'(?:NULL|"((?:[^"\\]|\\.)*)")\)'
)
_PROPERTIES: Final = re.compile(
    r"static PyGetSetDef (\w+)_getseters\[\] = \{.*?\n\s*\};", re.S
)
_PROPERTY: Final = re.compile(
    r'(\{"(\w+)",\s*\(getter\)\w+,\s*(?:\(setter\)\w+|NULL),\s*)NULL(, NULL\})'
)
_CLASS: Final = re.compile(r"CPyType_(\w+) = \(PyTypeObject \*\)cpy_r_\w+;")
_MODULE: Final = re.compile(r'("([\w.]+)",\s*)NULL(, /\* docstring \*/)')

_SET: Final = """
    {{
        PyObject *doc = PyUnicode_FromString({text});
        PyObject *type = (PyObject *)CPyType_{name};
        if (doc == NULL || PyObject_SetAttrString(type, "__doc__", doc) < 0)
            PyErr_Clear();
        Py_XDECREF(doc);
    }}"""


def docstrings_of(root: Path, modules: Iterable[str]) -> dict[str, str]:
    """Read the docstrings of modules; return them by the names that mypyc can use."""
    found: dict[str, str | None] = {}
    for module in modules:
        path = module.removesuffix(".py").split("/")
        source = ast.parse((root / module).read_text())
        found[".".join(path)] = ast.get_docstring(source)
        for name, text in _documented(source, ()):
            for start in range(len(path)):
                key = "___".join((*path[start:], *name))
                # mypyc does not use ambiguous names.
                found[key] = None if key in found else text
    return {key: text for key, text in found.items() if text}


def _documented(
    node: ast.AST, within: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = (*within, child.name)
            if text := ast.get_docstring(child):
                yield name, text
            if isinstance(child, ast.ClassDef):
                yield from _documented(child, name)


def with_docstrings(written: str, docstrings: dict[str, str]) -> str:
    """Return the C code with the docstrings filled in."""

    def method(match: re.Match[str]) -> str:
        text = docstrings.get(match[2])
        if text is None:
            return match[0]
        signature = f'"{match[3]}" ' if match[3] else ""
        return f"{match[1]}{signature}{_quoted(text)})"

    def properties(table: re.Match[str]) -> str:
        def one(match: re.Match[str]) -> str:
            text = docstrings.get(f"{table[1]}___{match[2]}")
            return f"{match[1]}{_quoted(text)}{match[3]}" if text else match[0]

        return _PROPERTY.sub(one, table[0])

    def class_(match: re.Match[str]) -> str:
        text = docstrings.get(match[1])
        if text is None:
            return match[0]
        return match[0] + _SET.format(text=_quoted(text), name=match[1])

    def module(match: re.Match[str]) -> str:
        text = docstrings.get(match[2])
        return f"{match[1]}{_quoted(text)}{match[3]}" if text else match[0]

    for pattern, replace in (
        (_METHOD, method),
        (_PROPERTIES, properties),
        (_CLASS, class_),
        (_MODULE, module),
    ):
        written = pattern.sub(replace, written)
    return written


def _quoted(text: str) -> str:
    """Return a C string literal, with octal escapes for bytes that are not ASCII."""
    plain = {ord("\n"): "\\n", ord('"'): '\\"', ord("\\"): "\\\\", ord("?"): "\\?"}
    return (
        '"'
        + "".join(
            plain.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}")
            for byte in text.encode()
        )
        + '"'
    )
