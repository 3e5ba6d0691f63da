"""Follow README.md and docs/start.md to the letter, as a stranger on the first day.

    python -m tests.first_day [--port PORT] [PAGE ...]

Each page is followed in a copy of the files that git has, with an empty HOME and a new
virtual environment. The seconds and the CPU time of each command are printed, as
machines are busy. It needs the network: pip installs, and docs/start.md downloads a
Kafka.

A page is read like this:

    ```sh      commands, one per line; after "in a terminal of its own" the command
               keeps running until a paragraph has "stop the broker"
    ```text    lines that the last command prints, in any order; `…` is any text. If
               "Ctrl-C" follows, it is sent once they are printed
    ```python  a program, for the file that "Save this as `NAME`" has named
"""

import argparse
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

__all__ = ["Command", "Page", "follow"]

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = ("README.md", "docs/start.md")
TIMEOUT: Final = 1800.0  # seconds for one command, on a busy machine
DROPPED: Final = ("PYTHONPATH", "VIRTUAL_ENV", "SHARECONS_BOOTSTRAP_SERVERS")
BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass
class Command:
    """A command of a page, with the lines that it prints.

    Attributes:
        ends_by_signal: Ctrl-C ends it after it has printed these lines.
        is_service: it runs beside the following commands.
        ends_services: stop the services before it.
    """

    line: str
    printed: list[str] = field(default_factory=list)
    ends_by_signal: bool = False
    is_service: bool = False
    ends_services: bool = False

    def missing(self, output: str) -> list[str]:
        """Return the lines of the page that are not in the output."""
        return [line for line in self.printed if not _pattern(line).search(output)]


class Page:
    """The commands of a page in their order, and its programs by their file names."""

    def __init__(self, text: str, port: int = 9092) -> None:
        self.commands: list[Command] = []
        self.files: dict[str, str] = {}
        prose, *blocks = BLOCK.split(text.replace("9092", str(port)))
        for kind, body, after in zip(*[iter(blocks)] * 3, strict=True):
            if kind == "sh":
                self._add_commands(body, prose, port)
            elif kind == "text":
                self.commands[-1].printed += body.splitlines()
            elif name := re.search(r"Save this as `([\w.]+)`:\s*$", prose):
                self.files[name[1]] = body
            if self.commands and "Ctrl-C" in after:
                self.commands[-1].ends_by_signal = True
            prose = after

    def save_files(self, directory: Path) -> None:
        for name, program in self.files.items():
            (directory / name).write_text(program)

    def _add_commands(self, body: str, prose: str, port: int) -> None:
        # The last paragraph introduces the commands.
        words = " ".join(prose.rstrip().rpartition("\n\n")[2].split()).lower()
        new = [Command(_at_port(line, port)) for line in body.splitlines()]
        new[0].is_service = "in a terminal of its own" in words
        new[0].ends_services = "stop the broker" in words
        self.commands += new


def follow(
    page: Page,
    directory: Path,
    environment: Mapping[str, str],
    report: Callable[[float, float, str], object],
) -> None:
    """Run the commands of a page; save its programs where `cd` leads.

    Args:
        directory: where the page begins, the clone.
        report: called with the seconds, the CPU time and the line of each command.

    Raises:
        AssertionError: a command fails, or does not print the lines of the page.
    """
    shell = ""  # what each new shell repeats
    with ExitStack() as services:
        for command in page.commands:
            if command.ends_services:
                services.close()
            if command.line.startswith((". ", "cd ")):
                shell += f"{command.line} && "
                if command.line.startswith("cd ") and command.line != "cd -":
                    page.save_files(directory / command.line[len("cd ") :])
                continue
            began, used = time.monotonic(), _cpu_seconds()
            running = _running(shell + command.line, directory, environment)
            with ExitStack() as stack:
                process = stack.enter_context(running)
                _wait(process, command)
                if command.is_service:
                    services.push(stack.pop_all())
            seconds = time.monotonic() - began
            report(seconds, _cpu_seconds() - used, command.line)


@contextmanager
def _running(
    line: str, directory: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        ["bash", "-c", line],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
        # A shell's background process and its children ignore SIGINT by default.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.communicate()


def _wait(process: subprocess.Popen[bytes], command: Command) -> None:
    """Wait until the command has ended, or printed its lines if it does not end."""
    assert process.stdout is not None
    serves = command.is_service or command.ends_by_signal
    output = b""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        if serves and not command.missing(output.decode()):
            break
        if select.select([process.stdout], [], [], 0.1)[0]:
            if not (more := os.read(process.stdout.fileno(), 1 << 16)):
                break
            output += more
    if command.ends_by_signal and process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    text = output.decode()
    assert not command.missing(text), f"{command.line} printed:\n{text}"
    if not command.is_service:
        rest, _ = process.communicate(timeout=30)
        codes = (0, 130, -signal.SIGINT) if command.ends_by_signal else (0,)
        assert process.returncode in codes, f"{command.line}: {text}{rest.decode()}"


def _pattern(line: str) -> re.Pattern[str]:
    parts = (r"\s+".join(map(re.escape, part.split())) for part in line.split("…"))
    return re.compile(r".*".join(parts))


def _at_port(line: str, port: int) -> str:
    """Return the command for a broker at another port than the default."""
    if port == 9092:
        return line
    return re.sub(
        r"(sharecons broker|-m sharecons\.testing\.kafka)", rf"\1 --port {port}", line
    )


def environment_of_a_stranger(home: Path, port: int = 9092) -> dict[str, str]:
    """Return the environment without this project and the user's files."""
    dropped = {name: os.environ[name] for name in os.environ if name not in DROPPED}
    own = {"HOME": str(home)}
    if port != 9092:
        own["SHARECONS_BOOTSTRAP_SERVERS"] = f"localhost:{port}"
    return {**dropped, **own}


def _copy_tracked_files(target: Path) -> None:
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.first_day")
    parser.add_argument("--port", type=int, default=9092, help="of the brokers")
    parser.add_argument("pages", nargs="*", default=PAGES, metavar="PAGE")
    options = parser.parse_args(arguments)
    for name in options.pages:
        page = Page((ROOT / name).read_text(), options.port)
        with tempfile.TemporaryDirectory() as place:
            home, clone = Path(place, "home"), Path(place, "sharecons")
            home.mkdir()
            _copy_tracked_files(clone)
            if not any("-m venv" in command.line for command in page.commands):
                new = ["python3 -m venv .venv", ". .venv/bin/activate"]
                page.commands[:0] = map(Command, new)
            _write(f"{name}\n")
            environment = environment_of_a_stranger(home, options.port)
            follow(page, clone, environment, _print_seconds)


def _print_seconds(seconds: float, cpu: float, line: str) -> None:
    _write(f"{seconds:8.1f} s  {cpu:6.1f} s of CPU  {line}\n")


def _cpu_seconds() -> float:
    """Return the CPU time of all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
