"""Compiles the path of a record with mypyc when a wheel is built.

The modules that pyproject.toml lists are typed Python like all others, and run as they
are: where there is no C compiler, or with SHARECONS_PURE=1 in the environment, the
wheel holds Python only. SHARECONS_COMPILE=1 makes it an error if they cannot be
compiled.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LEAN: Final = (
    "--param=builtin-expect-probability=100",
    "-fvisibility=hidden",
    "-fno-plt",
)
"""What mypyc writes asks after each operation whether it failed: GCC is told that none
does, and that nobody outside replaces what the library calls in itself. Measured
together, and with -O2: 3 % less CPU for a record, in throughput."""


def asked(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


class CompileHook(BuildHookInterface[Any]):
    """Adds compiled modules beside their Python."""

    _place: Path | None = None

    def dependencies(self) -> list[str]:
        if self._is_pure():
            return []
        # The compiler reads the types of what we import.
        return [*self.config["compilers"], *self.metadata.core.dependencies]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        # An editable install runs the source, so that a change takes effect.
        if version == "editable" or self._is_pure():
            return
        self._place = Path(mkdtemp(prefix="sharecons-build-"))
        try:
            libraries = compiled(Path(self.root), self.config["modules"], self._place)
        # Whatever a compiler raises; mypy exits if it finds fault with the source.
        except (Exception, SystemExit) as error:
            self.finalize()
            if asked("SHARECONS_COMPILE"):
                raise
            self.app.display_warning(f"not compiled, plain Python instead: {error}")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for library in libraries:
            inside = library.relative_to(self._place / "lib")
            build_data["force_include"][str(library)] = str(inside)

    def finalize(self, *_: Any) -> None:
        if self._place is not None:
            shutil.rmtree(self._place, ignore_errors=True)

    def _is_pure(self) -> bool:
        return asked("SHARECONS_PURE")


def compiled(root: Path, modules: list[str], place: Path) -> list[Path]:
    """Compile modules of the package; gives the libraries, which lie in `place`/lib."""
    # Only there when the build asked for it, see `dependencies`.
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    class Build(build_ext):
        def build_extensions(self) -> None:
            flags = accepted(self.compiler, LEAN, place / "tried")
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
    command = Build(Distribution({"name": "sharecons", "ext_modules": extensions}))
    command.build_lib = str(place / "lib")
    command.build_temp = str(place / "temporary")
    command.ensure_finalized()
    command.run()
    return sorted(path for path in (place / "lib").rglob("*") if path.is_file())


def accepted(compiler: Any, flags: Sequence[str], place: Path) -> list[str]:
    """Give those of the flags that a C compiler knows; GCC 12 knows all."""
    if compiler.compiler_type != "unix":
        return []
    place.mkdir()
    source = place / "nothing.c"
    source.write_text("int nothing;\n")
    return [flag for flag in flags if compiles(compiler, source, flag)]


def compiles(compiler: Any, source: Path, flag: str) -> bool:
    from setuptools.errors import CompileError

    try:
        compiler.compile(
            [str(source)],
            output_dir=str(source.parent),
            # Clang only warns of what is GCC's.
            extra_postargs=[flag, "-Werror"],
        )
    except CompileError:
        return False
    return True
