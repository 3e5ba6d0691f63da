"""Compiles the modules on a record's path with mypyc when a wheel is built.

pyproject.toml lists these modules. They are typed Python and also run uncompiled:
without a C compiler, or with SHARECONS_PURE=1 in the environment, the wheel contains
only Python. With SHARECONS_COMPILE=1 a failed compilation is an error.
"""

import ast
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILER_FLAGS: Final = (
    "--param=builtin-expect-probability=100",
    "-fvisibility=hidden",
    "-fno-plt",
)
"""For GCC: errors, for which mypyc's code checks after each operation, do not happen,
and no other library replaces our functions. 11 % less CPU time per record."""


def is_set(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


class CompileHook(BuildHookInterface[Any]):
    """Adds compiled modules beside their Python."""

    _build: Path | None = None

    def dependencies(self) -> list[str]:
        if self._is_pure():
            return []
        # mypyc reads the types of imported packages.
        return [*self.config["compilers"], *self.metadata.core.dependencies]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        # An editable install runs the source, so that a change takes effect.
        if version == "editable" or self._is_pure():
            return
        self._build = Path(mkdtemp(prefix="sharecons-build-"))
        try:
            libraries = compiled(Path(self.root), self.config["modules"], self._build)
        # Compilers raise many exceptions; mypy exits if it finds an error.
        except (Exception, SystemExit) as error:
            self.finalize()
            if is_set("SHARECONS_COMPILE"):
                raise
            self.app.display_warning(f"not compiled, plain Python instead: {error}")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for library in libraries:
            inside = library.relative_to(self._build / "lib")
            build_data["force_include"][str(library)] = str(inside)

    def finalize(self, *_: Any) -> None:
        if self._build is not None:
            shutil.rmtree(self._build, ignore_errors=True)

    def _is_pure(self) -> bool:
        return is_set("SHARECONS_PURE")


def compiled(root: Path, modules: list[str], place: Path) -> list[Path]:
    """Compile modules of the package; return the libraries, in `place`/lib."""
    # Installed only if the build requested it, see `dependencies`.
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    class Build(build_ext):
        def build_extensions(self) -> None:
            flags = accepted_flags(self.compiler, place / "flags")
            for extension in self.extensions:
                extension.extra_compile_args += flags
            super().build_extensions()

    os.chdir(root)
    extensions = mypycify(
        modules,
        opt_level="2",
        debug_level="0",
        group_name="sharecons",
        target_dir=str(place / "c"),
    )
    docstrings = docstrings_of(root, modules)
    for written in (place / "c").rglob("*.c"):
        written.write_text(with_docstrings(written.read_text(), docstrings))
    command = Build(Distribution({"name": "sharecons", "ext_modules": extensions}))
    command.build_lib = str(place / "lib")
    command.build_temp = str(place / "temporary")
    command.ensure_finalized()
    command.run()
    return sorted(path for path in (place / "lib").rglob("*") if path.is_file())


def accepted_flags(compiler: Any, place: Path) -> list[str]:
    """Return those of COMPILER_FLAGS with which the compiler compiles an empty file."""
    from setuptools.errors import CompileError

    if compiler.compiler_type != "unix":
        return []
    place.mkdir()
    empty = place / "empty.c"
    empty.write_text("int sharecons;\n")
    accepted = []
    for flag in COMPILER_FLAGS:
        with suppress(CompileError):
            compiler.compile([str(empty)], str(place), extra_postargs=["-Werror", flag])
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
    """Read the docstrings of modules; return them by the names that mypyc may use."""
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
