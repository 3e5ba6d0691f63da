"""Shells accept the scripts of `sharecons completion`."""

import shutil
import subprocess

import pytest

from tests.cli.run_cli import run_cli

CHECKS = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "-n"]}


@pytest.mark.parametrize("shell", CHECKS)
def test_script_contains_commands_and_options(shell):
    result = run_cli("completion", shell)

    assert 0 == result.code
    for word in (
        *("groups", "reset-offsets", "to-datetime", "all-topics", "redrive"),
        *("produce", "key-separator", "consume", "reject-message-on-error"),
    ):
        assert word in result.out


@pytest.mark.parametrize("shell", CHECKS)
def test_script_is_valid_shell_syntax(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    file = tmp_path / "sharecons"
    file.write_text(run_cli("completion", shell).out)

    subprocess.run([*CHECKS[shell], str(file)], check=True)


def completions(tmp_path, *words):
    file = tmp_path / "sharecons.bash"
    file.write_text(run_cli("completion", "bash").out)
    script = f"""
        source {file}
        COMP_WORDS=({" ".join(words)})
        COMP_CWORD={len(words) - 1}
        $(complete -p sharecons | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        printf "%s\\n" "${{COMPREPLY[@]}}"
    """
    ended = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True
    )
    return ended.stdout.split()


def test_bash_completes_options_of_run(tmp_path):
    assert ["run"] == completions(tmp_path, "sharecons", "ru")
    assert {"--retry-initial", "--retry-maximum", "--retry-topic", "--reload"} <= set(
        completions(tmp_path, "sharecons", "run", "--re")
    )
    assert "--process" not in completions(tmp_path, "sharecons", "run", "--process")


def test_bash_completes_commands_and_options(tmp_path):
    assert ["reset-offsets"] == completions(tmp_path, "sharecons", "groups", "res")
    assert ["--compression", "--compression-codec"] == completions(
        tmp_path, "sharecons", "produce", "--compr"
    )
    assert ["--max-messages"] == completions(tmp_path, "sharecons", "consume", "--max")
    assert {"--to-earliest", "--to-latest", "--to-datetime"} <= set(
        completions(tmp_path, "sharecons", "groups", "reset-offsets", "--to-")
    )
