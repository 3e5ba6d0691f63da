"""What `sharecons completion` writes is what shells take."""

import shutil
import subprocess

import pytest

from tests.cli.run_cli import run_cli

CHECKS = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "-n"]}


@pytest.mark.parametrize("shell", CHECKS)
def test_every_shell_knows_commands_and_options(shell):
    answer = run_cli("completion", shell)

    assert 0 == answer.code
    for word in ("groups", "reset-offsets", "to-datetime", "all-topics", "completion"):
        assert word in answer.out


@pytest.mark.parametrize("shell", CHECKS)
def test_the_shell_itself_takes_it(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    file = tmp_path / "sharecons"
    file.write_text(run_cli("completion", shell).out)

    subprocess.run([*CHECKS[shell], str(file)], check=True)


def completed(tmp_path, *words):
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


def test_bash_completes_a_command_and_an_option(tmp_path):
    assert ["reset-offsets"] == completed(tmp_path, "sharecons", "groups", "res")
    assert {"--to-earliest", "--to-latest", "--to-datetime"} <= set(
        completed(tmp_path, "sharecons", "groups", "reset-offsets", "--to-")
    )
