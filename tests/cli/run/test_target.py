"""Importing handlers, and what the errors say."""

import sys
from pathlib import Path

import pytest

from sharecons import BatchHandler, Handler, ShareWorker
from sharecons.cli.run.target import TargetError, import_target
from tests.cli.run_cli import run_cli

APP = Path(__file__).with_name("app.py")


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    """A working directory with the module `app`."""
    (tmp_path / "app.py").write_text(APP.read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("APP_SERVERS", "localhost:1")
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", "").startswith(str(tmp_path)):
            del sys.modules[name]


def error_of(target):
    with pytest.raises(TargetError) as caught:
        import_target(target)
    return caught.value


def test_handlers_and_workers_are_returned():
    app = sys.modules.get("app")
    assert app is None, "each test imports its own"
    assert "handle" == import_target("app:handle").__name__
    assert "handle" == import_target("app:handlers.handle").__name__
    assert isinstance(import_target("app:batches"), BatchHandler)
    assert isinstance(import_target("app:with_settings"), Handler)
    assert isinstance(import_target("app:make_worker"), ShareWorker)


def test_module_of_a_package_is_found(directory):
    (directory / "shop").mkdir()
    (directory / "shop" / "__init__.py").touch()
    (directory / "shop" / "jobs.py").write_text("def handle(record): ...")

    assert "shop.jobs" == import_target("shop.jobs:handle").__module__
    error = str(error_of("shop.job:handle"))
    assert "there is no module 'shop.job'" in error


def test_missing_module_error_says_what_was_searched(directory):
    error = str(error_of("ap:handle"))

    assert "there is no module 'ap'; did you mean 'app'? searched: " in error
    assert f"searched: {directory}, " in error


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("app", "'app' is not MODULE:HANDLER, such as app:handle"),
        ("app.handle", "did you mean 'app:handle'?"),
        ("app:", "is not MODULE:HANDLER"),
        ("app.py:handle", "not a module but a file"),
        ("./app.py:handle", "did you mean 'app:handle'?"),
        ("app:handlee", "has no 'handlee'; did you mean 'handle'? it has "),
        ("app:zzz", "has no 'zzz'; it has async_without_arguments, batches, block, "),
        ("app:handlers.zzz", "has no 'zzz'; it has handle"),
        ("app:NUMBER", "app:NUMBER is 5, which is neither callable nor a ShareWorker"),
        ("app:Handlers", "app:Handlers is a class; name a function, or an instance"),
        ("app:generate", "app:generate is a generator function"),
        ("app:two_arguments", "requires 2 arguments; a handler has one, the record"),
        ("app:without_arguments", "has no argument and returned None"),
        ("app:async_without_arguments", "is async and has no argument"),
    ],
)
def test_invalid_target_is_a_clear_error(target, problem):
    assert problem in str(error_of(target))


@pytest.mark.parametrize(
    ("source", "problem", "detail"),
    [
        (
            "import nothing_here",
            "No module named 'nothing_here'",
            "import nothing_here",
        ),
        ("1 / 0", "ZeroDivisionError: division by zero", "broken.py"),
        ("def f(:", "SyntaxError", "def f(:"),
    ],
)
def test_error_in_the_module_has_a_traceback(directory, source, problem, detail):
    (directory / "broken.py").write_text(source)
    error = error_of("broken:handle")

    assert "module 'broken' cannot be imported: " in str(error)
    assert problem in str(error)
    assert detail in error.details
    assert "importlib" not in error.details


HOSTILE = """
class NoText(Exception):
    def __str__(self):
        raise RuntimeError("no text")

class NoAttributes(Exception):
    def __getattribute__(self, name):
        raise RuntimeError(name)

class Meta(type):
    def __getattribute__(cls, name):
        raise RuntimeError(name)

class NoName(Exception, metaclass=Meta):
    pass

class NotFound(ModuleNotFoundError):
    @property
    def name(self):
        raise RuntimeError("name")

class Stop(BaseException):
    pass
"""


@pytest.mark.parametrize(
    ("raised", "text"),
    [
        ("NoText()", "NoText: <NoText: its text raised RuntimeError>"),
        ("NoAttributes('bad')", "NoAttributes: bad"),
        ("NoName('bad')", "NoName: bad"),
        ("NotFound('bad')", "NotFound: bad"),
        ("Stop('bad')", "Stop: bad"),
        ("GeneratorExit('bad')", "GeneratorExit: bad"),
        (
            "SystemExit(3)",
            "SystemExit: 3; put what ends a program below `if __name__ == '__main__':`",
        ),
    ],
)
def test_hostile_exception_of_the_module_or_of_its_function_is_a_clear_error(
    directory, raised, text
):
    (directory / "broken.py").write_text(f"{HOSTILE}raise {raised}\n")
    function = f"{HOSTILE}def make():\n    raise {raised}\n"
    (directory / "factory.py").write_text(function)

    in_module, in_function = error_of("broken:handle"), error_of("factory:make")

    assert f"module 'broken' cannot be imported: {text}" == str(in_module)
    assert f"factory:make() failed: {text}" == str(in_function)
    assert "broken.py" in in_module.details
    assert "factory.py" in in_function.details


@pytest.mark.parametrize(
    "source",
    [
        "def __getattr__(name): raise LookupError('no database')",
        "class Handle:\n"
        "    def __getattribute__(self, name): raise LookupError('no database')\n"
        "handle = Handle()",
    ],
)
def test_target_whose_attributes_raise_is_a_clear_error(directory, source):
    (directory / "broken.py").write_text(source)
    error = error_of("broken:handle")

    text = "broken:handle cannot be used: LookupError: no database"
    assert text == str(error)
    assert "broken.py" in error.details


def test_ctrl_c_during_the_import_is_raised(directory):
    (directory / "broken.py").write_text("raise KeyboardInterrupt")

    with pytest.raises(KeyboardInterrupt):
        import_target("broken:handle")


def test_function_that_cannot_make_its_worker_has_a_traceback(monkeypatch):
    monkeypatch.delenv("APP_SERVERS")
    error = error_of("app:make_worker")

    assert "app:make_worker() failed: KeyError: 'APP_SERVERS'" in str(error)
    assert "in make_worker" in error.details


SERVERS = ("--bootstrap-server", "localhost:1")
HANDLER = ("--topic", "orders", "--group", "billing", *SERVERS)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("app:handle",), "--topic and --group must be given with a handler"),
        (("app:handle", "--topic", "orders"), "--group must be given with a handler"),
        (("app:handle", "--topic", "a", "--group", "g"), "no bootstrap servers"),
        (
            ("app:make_worker", "--topic", "orders", "--key-order", *SERVERS),
            "app:make_worker is a ShareWorker, which has its own settings; --topic, "
            "--key-order, --bootstrap-server cannot change them",
        ),
        (("app:handle", *HANDLER, "--concurrency", "0"), "'0' is not a positive whole"),
        (("app:handle", *HANDLER, "--processes", "1000"), "1000 is more than 256"),
        (("app:handle", *HANDLER, "--retry-topic", "later"), "is not NAME=SECONDS"),
        (("app:handle", *HANDLER, "--grace", "-1"), "is not a number of seconds"),
        (("app:handle", *HANDLER, "--health-port", "x"), "is not a port"),
        (("app:handle", *HANDLER, "--dead-letter", "a b"), "dead_letter: topic name"),
        (
            ("app:handle", *HANDLER, "--retry-initial", "9", "--retry-maximum", "1"),
            "initial (9 s) must not be above maximum (1 s)",
        ),
        (("app:handlee", *HANDLER), "did you mean 'handle'?"),
    ],
)
def test_invalid_options_exit_with_2(options, problem):
    result = run_cli("run", *options)

    assert 2 == result.code
    assert problem in result.err
