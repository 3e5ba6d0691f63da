"""Install wheels in empty environments, and use them there.

    python tests/packaging/smoke.py [--python PYTHON] dist/*.whl

Each wheel is installed with its dependencies (binary ones only, so no compiler is
needed), by the Python that its name requires, found on PATH. `smoke_program.py` then
runs with an empty HOME and an empty working directory. Needs the standard library only.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(__file__).with_name("smoke_program.py").resolve()


def python_of(wheel: Path) -> str:
    """Return the Python that can import the wheel: this one if it is plain Python."""
    tag = wheel.name.split("-")[2]
    here = f"cp{sys.version_info.major}{sys.version_info.minor}"
    if tag in (here, "py3"):
        return sys.executable
    name = f"python{tag[2]}.{tag[3:]}"
    found = shutil.which(name)
    if found is None:
        raise SystemExit(f"{wheel.name}: {name} is not on PATH; --python names it")
    return found


def environment_of(home: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "SHARECONS", "XDG", "VIRTUAL_ENV"))
    }
    return {**kept, "HOME": str(home), "USERPROFILE": str(home)}


def try_wheel(wheel: Path, python: str, base: Path) -> str:
    """Return the last line of `smoke_program.py` where only this wheel is installed."""
    home = base / "home"
    home.mkdir()
    environment = environment_of(home)

    def run(*command: str | Path) -> str:
        return subprocess.run(
            command,
            cwd=home,
            env=environment,
            check=True,
            text=True,
            stdout=subprocess.PIPE,
        ).stdout

    run(python, "-I", "-m", "venv", base / "venv")
    [inside] = [
        path for path in (base / "venv").glob("*/python*") if path.stem == "python"
    ]
    pip = [inside, "-I", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run(*pip, "install", "--only-binary=:all:", wheel)
    return run(inside, "-I", "-W", "error", PROGRAM).splitlines()[-1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", help="use this one for all wheels")
    parser.add_argument("wheels", nargs="+", type=Path)
    options = parser.parse_args()
    for wheel in options.wheels:
        python = options.python or python_of(wheel)
        with tempfile.TemporaryDirectory() as base:
            line = try_wheel(wheel.resolve(), python, Path(base))
        expected = "plain Python" if "-none-any" in wheel.name else "compiled"
        if f", {expected}: works" not in line:
            raise SystemExit(f"{wheel.name}: expected {expected}: {line}")
        size = wheel.stat().st_size / 1e6
        sys.stdout.write(f"{wheel.name} ({size:.1f} MB): {line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
