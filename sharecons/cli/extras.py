"""Packages that a command needs and that only an extra of pip installs."""

from importlib.util import find_spec

from sharecons.cli.output import write_error

__all__ = ["is_installed", "is_missing"]


def is_missing(program: str, extra: str, *packages: str) -> bool:
    """Return whether a package is missing; write a line that says how to install it.

    Args:
        program: the command, with the option if only that needs the packages.
    """
    missing = next((each for each in packages if not is_installed(each)), None)
    if missing is None:
        return False
    name = missing.replace("_", "-")
    write_error(f"{program} needs {name}: pip install 'sharecons[{extra}]'")
    return True


def is_installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    return find_spec(package) is not None
