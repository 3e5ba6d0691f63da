"""`sharecons groups` on the embedded broker: what it shows, and what it does."""

import json
import re

import anyio
import pytest

from sharecons import ShareGroupAdmin, TopicPartition
from sharecons.version import VERSION
from tests.broker.clients import new_name
from tests.cli.run_cli import parse_tables, run_cli


@pytest.fixture
def ask(broker):
    def asked(*args):
        return run_cli("groups", *args, "--bootstrap-server", broker.bootstrap_servers)

    return asked


@pytest.fixture
def topic(admin):
    topic = admin.create_topic(2, new_name("orders"))
    admin.produce(topic, [b"x"] * 10, partition=0)
    return topic


@pytest.fixture
def stand(broker):
    """Makes an empty group that stands somewhere."""

    def made(offsets):
        group = new_name("group")
        wanted = {TopicPartition(*key): offset for key, offset in offsets.items()}

        async def alter():
            async with ShareGroupAdmin(broker.bootstrap_servers) as admin:
                (await admin.alter_share_group_offsets(group, wanted)).check()

        anyio.run(alter)
        return group

    return made


@pytest.fixture
def group(stand, topic):
    return stand({(topic, 0): 4})


def test_offsets_in_json(ask, topic, group):
    answer = ask("offsets", group, "--json")

    assert 0 == answer.code
    row = {
        "group": group,
        "topic": topic,
        "partition": 0,
        "start_offset": 4,
        "leader_epoch": 0,
        "lag": 6,
    }
    assert [row] == json.loads(answer.out)


def test_bootstrap_servers_in_either_spelling_before_or_behind(broker, group):
    where = broker.bootstrap_servers
    ways = [
        ("groups", "--bootstrap-server", where, "offsets", group),
        ("groups", "--bootstrap-servers", where, "offsets", "--group", group),
        ("groups", "offsets", group, f"--bootstrap-servers={where}"),
        ("groups", f"--bootstrap-server={where}", "--describe", "--group", group),
    ]

    answers = [run_cli(*way) for way in ways]

    assert 1 == len({answer.out for answer in answers})
    assert [0] * 4 == [answer.code for answer in answers]
    assert group in answers[0].out


def test_bootstrap_servers_from_the_environment(broker, group, monkeypatch):
    monkeypatch.setenv("SHARECONS_BOOTSTRAP_SERVERS", broker.bootstrap_servers)

    answer = run_cli("groups", "list")

    assert group in answer.out.splitlines()


def test_describe_shows_state_and_offsets(ask, topic, group):
    answer = ask("describe", group)

    state, offsets = parse_tables(answer.out)
    assert ("Empty", "0") == (state["STATE"], state["#MEMBERS"])
    assert (topic, "4", "6") == (
        offsets["TOPIC"],
        offsets["START-OFFSET"],
        offsets["LAG"],
    )


def test_describe_nests_all_in_json(ask, topic, group):
    (found,) = json.loads(ask("describe", group, "--json").out)

    assert (group, "Empty", []) == (found["group"], found["state"], found["members"])
    assert [4] == [each["start_offset"] for each in found["offsets"]]


def test_one_group_that_is_not_there_hides_no_other(ask, group):
    answer = ask("offsets", group, f"{group}x")

    assert 1 == answer.code
    assert [group] == [row["GROUP"] for row in parse_tables(answer.out)]
    (line,) = answer.lines
    assert line.startswith(f"sharecons groups: cannot describe share group '{group}x'")
    assert line.endswith(f"; did you mean '{group}'?")


def test_an_empty_listing_is_an_empty_list(ask):
    answer = ask("list", "--state", "Dead", "--json")

    assert (0, []) == (answer.code, json.loads(answer.out))


def test_groups_of_other_types_are_listed_when_asked_for(broker, ask, topic, group):
    classic = new_name("classic")

    async def commit():
        async with ShareGroupAdmin(broker.bootstrap_servers) as admin:
            (
                await admin.alter_consumer_group_offsets(
                    classic, {TopicPartition(topic, 0): 1}
                )
            ).check()

    anyio.run(commit)
    every = {
        row["GROUP"]: row["TYPE"]
        for row in parse_tables(ask("list", "--type", "all").out)
    }
    refused = ask("offsets", classic)

    assert ("classic", "share") == (every[classic], every[group])
    assert classic not in ask("list").out
    assert 1 == refused.code
    assert refused.lines[0].endswith("it is a classic group")


def test_configs_are_set_shown_and_set_back(ask, group):
    name = "share.record.lock.duration.ms"

    def shown():
        answer = ask("configure", group, "--json")
        return {
            row["config"]: (row["value"], row["is_default"])
            for row in json.loads(answer.out)
        }

    assert ("30000", True) == shown()[name]
    assert 0 == ask("configure", group, "--set", f"{name}=15000").code
    assert ("15000", False) == shown()[name]
    assert 0 == ask("configure", group, "--unset", name).code
    assert ("30000", True) == shown()[name]


def test_configs_of_a_dry_run_are_checked_and_not_set(ask, group):
    name = "share.record.lock.duration.ms"

    good = ask("configure", group, "--set", f"{name}=15000", "--dry-run")
    bad = ask("configure", group, "--set", f"{name}=3")

    assert (0, ["30000"]) == (
        good.code,
        [row["VALUE"] for row in parse_tables(good.out)],
    )
    assert "nothing was changed" in good.err
    assert 2 == bad.code
    (line,) = bad.lines
    assert f"{name} must be from" in line


def test_a_reset_shows_where_it_was(ask, topic, group):
    dry = ask(
        "reset-offsets", group, "--topic", f"{topic}:0", "--to-latest", "--dry-run"
    )
    done = ask(
        "reset-offsets", group, "--topic", f"{topic}:0", "--to-latest", "--execute"
    )
    (after,) = parse_tables(ask("offsets", group).out)

    assert dry.out == done.out
    (row,) = parse_tables(done.out)
    assert ("10", "4") == (row["NEW-OFFSET"], row["OLD-OFFSET"])
    assert "nothing was changed" in dry.err
    assert ("10", "0") == (after["START-OFFSET"], after["LAG"])


def test_a_reset_with_one_bad_partition_changes_nothing(ask, topic, group):
    answer = ask(
        "reset-offsets", group, "--topic", f"{topic}:0,7", "--to-latest", "--execute"
    )
    (after,) = parse_tables(ask("offsets", group).out)

    assert (1, "") == (answer.code, answer.out)
    assert f"the partitions of topic '{topic}' are 0 to 1" in answer.lines[0]
    assert "4" == after["START-OFFSET"]


def test_a_misspelt_topic_is_guessed(ask, topic, group):
    answer = ask(
        "reset-offsets", group, "--topic", topic[1:], "--to-latest", "--execute"
    )

    assert 1 == answer.code
    assert answer.lines[0].endswith(f"did you mean '{topic}'?")


def new_offsets(answer):
    assert 0 == answer.code, answer.err
    return {
        (row["TOPIC"], int(row["PARTITION"])): int(row["NEW-OFFSET"])
        for row in parse_tables(answer.out)
    }


@pytest.mark.parametrize(
    ("offset", "expected", "note"),
    [
        (
            7,
            {0: 7, 1: 0},
            "the log ends at a lower offset, which is used instead: {t}-1",
        ),
        (
            -3,
            {0: 0, 1: 0},
            "the log starts at a higher offset, which is used instead: {t}-0, {t}-1",
        ),
        (
            2**63 - 1,
            {0: 10, 1: 0},
            "the log ends at a lower offset, which is used instead: {t}-0, {t}-1",
        ),
    ],
)
def test_reset_to_offset_stays_within_the_logs(
    ask, topic, group, offset, expected, note
):
    how = ("--topic", topic, "--to-offset", offset, "--dry-run")
    answer = ask("reset-offsets", group, *how)

    expected = {(topic, key): value for key, value in expected.items()}
    assert expected == new_offsets(answer)
    assert note.format(t=topic) in answer.err


def test_reset_to_current_keeps_start_offsets(ask, topic, group):
    how = ("--topic", topic, "--to-current", "--execute")
    answer = ask("reset-offsets", group, *how)

    assert {(topic, 0): 4, (topic, 1): 0} == new_offsets(answer)
    assert (
        f"the group has no start offset, so the log end offset is used: {topic}-1"
        in (answer.err)
    )
    assert "4" == parse_tables(ask("offsets", group).out)[0]["START-OFFSET"]


def test_exported_offsets_are_read_back(ask, topic, group, tmp_path):
    how = ("--topic", topic, "--to-latest")
    exported = ask("reset-offsets", group, *how, "--export", "--dry-run")
    path = tmp_path / "offsets.csv"
    path.write_text(exported.out)

    answer = ask("reset-offsets", group, "--from-file", path, "--execute")

    assert f"{topic},0,10\n{topic},1,0\n" == exported.out
    assert {(topic, 0): 10, (topic, 1): 0} == new_offsets(answer)


@pytest.mark.parametrize(
    "text",
    [
        "{t},0,5\n{t},1,0",
        "{t},0,5\r\n\r\n{t},1,0\r\n\r\n",
        "\ufeff{t}, 0, 5\n  {t} , 1 , 0\n",
        '"{t}","0","5"\n{g},{t},1,0\n',
    ],
)
def test_offsets_files_may_be_written_by_other_programs(
    ask, topic, group, tmp_path, text
):
    path = tmp_path / "offsets.csv"
    path.write_bytes(text.format(t=topic, g=group).encode())

    answer = ask("reset-offsets", group, "--from-file", path, "--dry-run")

    assert {(topic, 0): 5, (topic, 1): 0} == new_offsets(answer)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"", "has no offsets: write lines of the form TOPIC,PARTITION,OFFSET"),
        (b"\n\n", "has no offsets"),
        (b"t,0\n", "line 1: 2 values instead of 3: write TOPIC,PARTITION,OFFSET"),
        (b"t,0,1\n\n# all\n", "line 3: 1 values instead of 3"),
        (b"t,0,1,2,3\n", "line 1: 5 values instead of 3"),
        (b"topic,partition,offset\nt,0,1\n", "line 1: this is a header: remove"),
        (b"other,t,0,1\n", "line 1: the first of 4 values is group 'other', but"),
        (b",0,1\n", "line 1: the topic is missing"),
        (b"t,x,1\n", "line 1: partition 'x' is not a number from 0 to 2147483647"),
        (b"t,-1,1\n", "line 1: partition '-1' is not a number"),
        (b"t,2147483648,1\n", "line 1: partition '2147483648' is not a number"),
        (b"t,0,1\nt,1,-1\n", "line 2: offset '-1' is not a number from 0 to"),
        (b"t,0,9223372036854775808\n", "line 1: offset '9223372036854775808' is"),
        (b"t,0,1.5\n", "line 1: offset '1.5' is not a number"),
        ("t,0,٣\n".encode(), "line 1: offset '٣' is not a number"),
        (b"t,0,1\nt,0,2\n", "line 2: t-0 already has an offset in line 1: remove"),
        (b"t,0,1\nt\xff,0,1\n", "is not UTF-8 at byte 7: save it as UTF-8"),
        (None, "cannot read"),
    ],
)
def test_offsets_file_with_a_mistake_names_the_line(ask, group, tmp_path, text, error):
    path = tmp_path / "offsets.csv"
    if text is not None:
        path.write_bytes(text)

    answer = ask("reset-offsets", group, "--from-file", path, "--execute")

    assert 2 == answer.code
    assert 1 == len(answer.lines), answer.err
    assert str(path) in answer.err
    assert error in answer.err


def test_offsets_file_with_a_missing_partition_changes_nothing(
    ask, topic, group, tmp_path
):
    path = tmp_path / "offsets.csv"
    path.write_text(f"{topic},0,1\n{topic},7,1\nno-such-topic,0,1\n")

    answer = ask("reset-offsets", group, "--from-file", path, "--execute")

    assert 1 == answer.code
    assert f"the partitions of topic '{topic}' are 0 to 1" in answer.err
    assert "no-such-topic" in answer.err
    assert "4" == parse_tables(ask("offsets", group).out)[0]["START-OFFSET"]


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (
            ("--from-file", "f", "--topic", "t"),
            "cannot be combined with --topic or --all-topics",
        ),
        (
            ("--from-file", "f", "--all-topics"),
            "cannot be combined with --topic or --all-topics",
        ),
        (("--from-file", "f", "--to-current"), "needs exactly one of"),
        (("--topic", "t", "--to-offset", "5", "--to-current"), "needs exactly one of"),
        (("--topic", "t", "--to-offset", "0", "--to-latest"), "needs exactly one of"),
        (("--topic", "t", "--to-offset", "x"), "'x'"),
        (("--to-offset", "5"), "needs --topic, --all-topics or --from-file"),
        (
            ("--topic", "t", "--to-latest", "--export", "--json"),
            "cannot be combined with --json",
        ),
    ],
)
def test_reset_options_that_exclude_each_other(ask, group, args, error, tmp_path):
    path = tmp_path / "offsets.csv"
    path.write_text("t,0,1\n")
    args = [str(path) if each == "f" else each for each in args]

    answer = ask("reset-offsets", group, *args, "--dry-run")

    assert 2 == answer.code
    assert error in answer.err


def test_groups_has_a_version(ask):
    answer = ask("--version")

    assert (0, f"sharecons {VERSION}\n") == (answer.code, answer.out)


def test_a_group_of_another_type_is_not_reset(broker, ask, topic):
    classic = new_name("classic")

    async def commit():
        async with ShareGroupAdmin(broker.bootstrap_servers) as admin:
            (
                await admin.alter_consumer_group_offsets(
                    classic, {TopicPartition(topic, 0): 1}
                )
            ).check()

    anyio.run(commit)
    answer = ask("reset-offsets", classic, "--topic", topic, "--to-latest", "--dry-run")

    assert 1 == answer.code
    assert answer.lines[0].endswith("it is a classic group")


def test_topics_are_forgotten_each_for_itself(ask, topic, group):
    answer = ask("delete-offsets", group, "--topic", topic, "--topic", f"{topic}x")

    assert 1 == answer.code
    assert ["deleted", "UNKNOWN_TOPIC_OR_PARTITION"] == [
        row["STATUS"] for row in parse_tables(answer.out)
    ]
    assert 1 == len(answer.lines)
    assert "has no offset information" in ask("offsets", group).err


def test_deleting_says_of_each_group_what_became_of_it(ask, group):
    dry = ask("delete", group, "nobody", "--dry-run")
    done = ask("delete", group, "nobody", "--json")

    assert (1, 1) == (dry.code, done.code)
    assert group not in ask("list").out
    deleted, missing = json.loads(done.out)
    assert {"group": group, "status": "deleted", "error": None} == deleted
    assert ("nobody", "GROUP_ID_NOT_FOUND") == (missing["group"], missing["status"])


def test_all_groups_are_deleted_when_all_are_named(ask, stand, topic):
    groups = {stand({(topic, 0): 1}), stand({(topic, 0): 2})}

    assert groups <= {
        row["GROUP"] for row in parse_tables(ask("delete", "--all-groups").out)
    }
    assert "" == ask("list").out
    assert 0 == ask("delete", "--all-groups").code


def test_many_groups_that_lack_something_are_told_of_in_one_line(ask, stand, topic):
    for _ in range(6):
        stand({(topic, 0): 1})

    answer = ask("members", "--all-groups")

    (line,) = answer.lines
    assert re.fullmatch(r"note: \d+ share groups have no active members", line)
