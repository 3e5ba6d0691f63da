"""Commands start fast: they import only the modules that they need."""

import subprocess
import sys

import pytest

from sharecons.cli import parser


def loaded_modules(*args):
    """Run a command; return the names of the modules that it imports."""
    script = (
        "import sys; from sharecons.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "sys.stderr.write(' '.join(name for name, m in sys.modules.items() if m))"
    )
    command = [sys.executable, "-c", script, *args]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(ended.stderr.split())


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["groups", "--help"],
        ["groups", "delete", "--help"],
        ["produce", "--help"],
        ["consume", "--help"],
        ["run", "--help"],
    ],
)
def test_help_imports_no_client(args):
    modules = loaded_modules(*args)

    heavy = ("kio", "anyio", "asyncio", "rich", "ssl", "structlog", "shtab", "difflib")
    assert [] == [name for name in heavy if name in modules]
    assert "sharecons.admin" not in modules


@pytest.mark.slow("starts a process")
def test_command_imports_only_needed_modules(broker):
    modules = loaded_modules(
        "groups", "list", "--bootstrap-server", broker.bootstrap_servers
    )

    heavy = ("rich", "hypothesis", "trio", "structlog", "confluent_kafka")
    assert [] == [name for name in heavy if name in modules]
    apis = {name.split(".")[2] for name in modules if name.startswith("kio.schema.")}
    assert "share_fetch" not in apis
    assert "sharecons.consumer.share_consumer" not in modules


@pytest.mark.parametrize(
    "command", [("groups", "reset-offsets"), ("groups", "list"), ("migrate", "a", "b")]
)
def test_unknown_option_names_help_of_its_command(command, capsys):
    name = " ".join(("sharecons", *(w for w in command if len(w) > 1)))
    with pytest.raises(SystemExit) as stopped:
        parser().parse_args([*command, "--foo"])

    assert 2 == stopped.value.code
    assert f"{name} --help" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("broker", "host"),
        ("dashboard", "host"),
        ("exporter", "host"),
        ("run module:handler --topic t --group g", "health_host"),
    ],
)
def test_ports_are_served_on_this_machine_only_by_default(command, option):
    options = parser().parse_args(command.split())

    assert "127.0.0.1" == getattr(options, option)
