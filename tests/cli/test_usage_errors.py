"""Options that do not fit: one line that says so, before any request."""

import shlex

import pytest

from sharecons.cli.exit_codes import ExitCode
from tests.cli.run_cli import run_cli

RESET = "groups reset-offsets g"
CONSUME = "consume --topic t --group g"
ERRORS = [
    # groups
    ("groups --bogus", "--bogus"),
    ("groups bogus", "'bogus'"),
    ("groups list --timeout soon", "soon"),
    ("groups delete", "delete needs a group"),
    ("groups", "give a command"),
    ("groups configure g --set novalue", "NAME=VALUE"),
    ("groups configure g --set a=1 --unset a", "more than once"),
    ("groups list --type bogus", "'bogus'"),
    (f"{RESET} --topic t --to-datetime noon --dry-run", "'noon'"),
    (
        f"{RESET} --from-file FILE --topic t --dry-run",
        "cannot be combined with --topic or --all-topics",
    ),
    (
        f"{RESET} --from-file FILE --all-topics --dry-run",
        "cannot be combined with --topic or --all-topics",
    ),
    (f"{RESET} --from-file FILE --to-current --dry-run", "needs exactly one of"),
    (
        f"{RESET} --topic t --to-offset 5 --to-current --dry-run",
        "needs exactly one of",
    ),
    (f"{RESET} --topic t --to-offset 0 --to-latest --dry-run", "needs exactly one of"),
    (f"{RESET} --topic t --to-offset x --dry-run", "'x'"),
    (f"{RESET} --to-offset 5 --dry-run", "needs --topic, --all-topics or --from-file"),
    (
        f"{RESET} --topic t --all-topics --to-latest --dry-run",
        "--topic cannot be combined with --all-topics",
    ),
    (
        f"{RESET} --topic t --to-latest --export --json --dry-run",
        "cannot be combined with --json",
    ),
    # consume
    ("consume t", "--group"),
    ("consume --group g", "topic"),
    (f"{CONSUME} --release --reject", "not allowed with argument"),
    (f"{CONSUME} --max-messages 0", "is not a whole number from 1"),
    (f"{CONSUME} --timeout-ms 0", "is not a positive number of milliseconds"),
    (
        f"{CONSUME} --formatter-property print.keys=true",
        "unknown property 'print.keys'",
    ),
    (f"{CONSUME} --formatter-property print.key=1", "must be true or false, not '1'"),
    (f"{CONSUME} --value-deserializer avro", "unknown deserializer 'avro'"),
    (f"{CONSUME} --json --key-deserializer long", "--json does not go with"),
    (f"{CONSUME} --auto-offset-reset none", "auto_offset_reset must be"),
    (f"{CONSUME} --from-beginning --auto-offset-reset latest", "not allowed with"),
    (f"{CONSUME} --member-id ''", "member_id must be a non-empty str"),
    (f"{CONSUME} bad/name", "topic name 'bad/name'"),
    # produce
    ("produce", "name one topic"),
    ("produce t --topic t", "name one topic"),
    ("produce bad/name", "topic name 'bad/name'"),
    ("produce t --json --key-separator :", "--json does not go with"),
    ("produce t --key-separator ''", "key.separator must not be empty"),
    (
        "produce t --reader-property parse.keys=true",
        "unknown property 'parse.keys'",
    ),
    ("produce t --reader-property parse.key", "is not NAME=VALUE"),
    ("produce t --reader-config /none", "/none: No such file"),
    ("produce t --header a", "is not NAME=VALUE"),
    ("produce t --partition -1", "is not a partition number"),
    ("produce t --compression lzma", "invalid choice"),
    # dead-letters
    ("dead-letters list d --filter colour=red", "the fields are "),
    ("dead-letters list d --filter since=noon", "is not a time"),
    ("dead-letters list d --filter group", "is not FIELD=TEXT"),
    ("dead-letters list d --limit 0", "--limit"),
    ("dead-letters list d --redriven --not-redriven", "not allowed with"),
    ("dead-letters list 'no topic'", "no topic"),
    ("dead-letters show d 0", "'0'"),
    ("dead-letters show d a:b", "'a:b'"),
    ("dead-letters redrive d --rate 0", "--rate"),
    ("dead-letters redrive d --rate nan", "--rate"),
    ("dead-letters redrive d --to d", "to is the dead-letter topic itself"),
    ("dead-letters redrive d --to 'no topic'", "no topic"),
    ("dead-letters redrive d --max-redrives 0", "--max-redrives"),
    ("dead-letters redrive d --only 0", "'0'"),
    ("dead-letters redrive d --again", "again needs only"),
    ("dead-letters delete d --before 0:1", "--dry-run"),
    ("dead-letters delete d --execute", "--before"),
    ("dead-letters delete d --before 0:1 --execute --dry-run", "not allowed with"),
    ("dead-letters delete d --before 0:1 --before 0:2 --dry-run", "only once"),
    # create-topics
    ("create-topics", "name the topics to create"),
    ("create-topics a b:", "'b:' is not NAME or NAME:PARTITIONS"),
    ("create-topics a:0", "'a:0' is not NAME or NAME:PARTITIONS"),
    ("create-topics 'a b'", "topic name 'a b'"),
    ("create-topics a:2 a:3", "'a' twice"),
    ("create-topics a --topic b --dead-letter c", "in a command of their own"),
    ("create-topics a --dead-letter c", "in a command of their own"),
    ("create-topics --dead-letter c", "set --topic"),
    ("broker --topic a:0", "'a:0' is not NAME or NAME:PARTITIONS"),
    (
        "create-topics --topic a",
        "no topic to create: set --retry-topic, --dead-letter or both",
    ),
    (
        "create-topics --topic a --dead-letter a",
        "the dead-letter topic 'a' is a topic that",
    ),
    (
        "create-topics --topic a --retry-topic a=60",
        "the retry topic 'a' is a topic that",
    ),
    (
        "create-topics --topic a --retry-topic b --dead-letter b",
        "'b' is the dead-letter topic",
    ),
    (
        "create-topics --topic a --retry-topic 'b c'",
        "--retry-topic: topic name 'b c' can contain only",
    ),
    (
        "create-topics --topic a --retry-topic =60",
        "--retry-topic must be non-empty topic names",
    ),
    # others
    ("", "COMMAND"),
    ("bogus", "'bogus'"),
]


@pytest.mark.slow("imports each command")
@pytest.mark.parametrize(("command", "words"), ERRORS, ids=[each for each, _ in ERRORS])
def test_invalid_options_are_one_line(command, words, tmp_path):
    path = tmp_path / "offsets.csv"
    path.write_text("t,0,1\n")
    args = [str(path) if each == "FILE" else each for each in shlex.split(command)]
    servers = ["--bootstrap-server", "127.0.0.1:1"] if args else []

    result = run_cli(*args, *servers, stdin=b"")

    assert ExitCode.USAGE == result.code, result.err
    assert 1 == len(result.lines), result.err
    assert words in result.err
    assert "Traceback" not in result.err
