"""The commands of `sharecons groups` on the embedded broker."""

import json
import re

import anyio
import pytest

from sharecons import ShareGroupAdmin, TopicPartition
from sharecons.version import VERSION
from tests.broker.clients import new_name
from tests.cli.run_cli import parse_tables, run_cli

NO_GROUPS = (
    "note: there are no share groups, or none on which this principal has DESCRIBE\n"
)


@pytest.fixture
def run_groups(broker):
    def run(*args):
        return run_cli("groups", *args, "--bootstrap-server", broker.bootstrap_servers)

    return run


@pytest.fixture
def topic(admin):
    topic = admin.create_topic(2, new_name("orders"))
    admin.produce(topic, [b"x"] * 10, partition=0)
    return topic


@pytest.fixture
def group_at(broker):
    """Return a function that creates an empty group with start offsets."""

    def create(offsets):
        group = new_name("group")
        start = {TopicPartition(*key): offset for key, offset in offsets.items()}

        async def set_offsets():
            async with ShareGroupAdmin(
                bootstrap_servers=broker.bootstrap_servers
            ) as admin:
                (await admin.alter_share_group_offsets(group, start)).check()

        anyio.run(set_offsets)
        return group

    return create


@pytest.fixture
def group(group_at, topic):
    return group_at({(topic, 0): 4})


def test_offsets_json_has_all_keys(run_groups, topic, group):
    result = run_groups("offsets", group, "--json")

    assert 0 == result.code
    row = {
        "group": group,
        "topic": topic,
        "partition": 0,
        "start_offset": 4,
        "leader_epoch": 0,
        "lag": 6,
    }
    assert [row] == json.loads(result.out)


def test_bootstrap_server_option_is_accepted_in_all_forms(broker, group):
    where = broker.bootstrap_servers
    ways = [
        ("groups", "--bootstrap-server", where, "offsets", group),
        ("groups", "--bootstrap-servers", where, "offsets", "--group", group),
        ("groups", "offsets", group, f"--bootstrap-servers={where}"),
        ("groups", f"--bootstrap-server={where}", "--describe", "--group", group),
    ]

    results = [run_cli(*way) for way in ways]

    assert 1 == len({result.out for result in results})
    assert [0] * 4 == [result.code for result in results]
    assert group in results[0].out


def test_bootstrap_servers_come_from_environment(broker, group, monkeypatch):
    monkeypatch.setenv("SHARECONS_BOOTSTRAP_SERVERS", broker.bootstrap_servers)

    result = run_cli("groups", "list")

    assert group in result.out.splitlines()


def test_describe_shows_state_and_offsets(run_groups, topic, group):
    result = run_groups("describe", group)

    state, offsets = parse_tables(result.out)
    assert ("Empty", "0") == (state["STATE"], state["#MEMBERS"])
    assert (topic, "4", "6") == (
        offsets["TOPIC"],
        offsets["START-OFFSET"],
        offsets["LAG"],
    )


def test_describe_json_nests_members_and_offsets(run_groups, topic, group):
    (found,) = json.loads(run_groups("describe", group, "--json").out)

    assert (group, "Empty", []) == (found["group"], found["state"], found["members"])
    assert [4] == [each["start_offset"] for each in found["offsets"]]


def test_unknown_group_does_not_hide_others(run_groups, group):
    result = run_groups("offsets", group, f"{group}x")

    assert 1 == result.code
    assert [group] == [row["GROUP"] for row in parse_tables(result.out)]
    (line,) = result.lines
    assert line.startswith(f"sharecons groups: cannot describe share group '{group}x'")
    assert line.endswith(f"; did you mean '{group}'?")


def test_list_without_groups_is_empty_json_list(run_groups):
    result = run_groups("list", "--state", "Dead", "--json")

    assert (0, []) == (result.code, json.loads(result.out))


def test_list_type_shows_groups_of_other_types(broker, run_groups, topic, group):
    classic = new_name("classic")

    async def commit():
        async with ShareGroupAdmin(bootstrap_servers=broker.bootstrap_servers) as admin:
            (
                await admin.alter_consumer_group_offsets(
                    classic, {TopicPartition(topic, 0): 1}
                )
            ).check()

    anyio.run(commit)
    types = {
        row["GROUP"]: row["TYPE"]
        for row in parse_tables(run_groups("list", "--type", "all").out)
    }
    failed = run_groups("offsets", classic)

    assert ("classic", "share") == (types[classic], types[group])
    assert classic not in run_groups("list").out
    assert 1 == failed.code
    assert failed.lines[0].endswith("it is a classic group")


def test_configure_sets_shows_and_unsets_config(run_groups, group):
    name = "share.record.lock.duration.ms"

    def shown():
        result = run_groups("configure", group, "--json")
        return {
            row["config"]: (row["value"], row["is_default"])
            for row in json.loads(result.out)
        }

    assert ("30000", True) == shown()[name]
    assert 0 == run_groups("configure", group, "--set", f"{name}=15000").code
    assert ("15000", False) == shown()[name]
    assert 0 == run_groups("configure", group, "--unset", name).code
    assert ("30000", True) == shown()[name]


def test_configure_dry_run_validates_without_setting(run_groups, group):
    name = "share.record.lock.duration.ms"

    good = run_groups("configure", group, "--set", f"{name}=15000", "--dry-run")
    bad = run_groups("configure", group, "--set", f"{name}=3")

    assert (0, ["30000"]) == (
        good.code,
        [row["VALUE"] for row in parse_tables(good.out)],
    )
    assert "nothing was changed" in good.err
    assert 2 == bad.code
    (line,) = bad.lines
    assert f"{name} must be from" in line


def test_reset_shows_new_and_old_offset(run_groups, topic, group):
    dry = run_groups(
        "reset-offsets", group, "--topic", f"{topic}:0", "--to-latest", "--dry-run"
    )
    done = run_groups(
        "reset-offsets", group, "--topic", f"{topic}:0", "--to-latest", "--execute"
    )
    (after,) = parse_tables(run_groups("offsets", group).out)

    assert dry.out == done.out
    (row,) = parse_tables(done.out)
    assert ("10", "4") == (row["NEW-OFFSET"], row["OLD-OFFSET"])
    assert "nothing was changed" in dry.err
    assert ("10", "0") == (after["START-OFFSET"], after["LAG"])


def test_reset_with_unknown_partition_changes_nothing(run_groups, topic, group):
    result = run_groups(
        "reset-offsets", group, "--topic", f"{topic}:0,7", "--to-latest", "--execute"
    )
    (after,) = parse_tables(run_groups("offsets", group).out)

    assert (1, "") == (result.code, result.out)
    assert f"the partitions of topic '{topic}' are 0 to 1" in result.lines[0]
    assert "4" == after["START-OFFSET"]


def test_misspelled_topic_gets_a_suggestion(run_groups, topic, group):
    result = run_groups(
        "reset-offsets", group, "--topic", topic[1:], "--to-latest", "--execute"
    )

    assert 1 == result.code
    assert result.lines[0].endswith(f"did you mean '{topic}'?")


def new_offsets(result):
    assert 0 == result.code, result.err
    return {
        (row["TOPIC"], int(row["PARTITION"])): int(row["NEW-OFFSET"])
        for row in parse_tables(result.out)
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
    run_groups, topic, group, offset, expected, note
):
    how = ("--topic", topic, "--to-offset", offset, "--dry-run")
    result = run_groups("reset-offsets", group, *how)

    expected = {(topic, key): value for key, value in expected.items()}
    assert expected == new_offsets(result)
    assert note.format(t=topic) in result.err


def test_reset_to_current_keeps_start_offsets(run_groups, topic, group):
    how = ("--topic", topic, "--to-current", "--execute")
    result = run_groups("reset-offsets", group, *how)

    assert {(topic, 0): 4, (topic, 1): 0} == new_offsets(result)
    assert (
        f"the group has no start offset, so the log end offset is used: {topic}-1"
        in (result.err)
    )
    assert "4" == parse_tables(run_groups("offsets", group).out)[0]["START-OFFSET"]


@pytest.mark.parametrize("each", [False, True], ids=["group", "partitions"])
@pytest.mark.parametrize("how", ["--to-current", "--to-earliest"])
def test_reset_changes_nothing_if_start_offsets_are_unreadable(
    broker, run_groups, topic, group, how, each
):
    """With --to-current, the log end offset would be used, and records skipped."""
    arguments = ("--topic", topic, how, "--execute")
    fault = broker.faults.on("DescribeShareGroupOffsets")
    with fault.change(lambda response, _: refuse_offsets(response, each=each)):
        result = run_groups("reset-offsets", group, *arguments)

    assert (1, "") == (result.code, result.out)
    assert (
        f"sharecons groups: cannot list the offset{'' if each else 's'} of"
        in (result.lines[0])
    )
    assert "UNKNOWN_SERVER_ERROR" in result.lines[0]
    assert "4" == parse_tables(run_groups("offsets", group).out)[0]["START-OFFSET"]


def refuse_offsets(response, *, each):
    """Set an error in each group of a response, or in each of its partitions."""
    for group in response["groups"]:
        if not each:
            group["error_code"] = -1
        for topic in group["topics"]:
            for partition in topic["partitions"]:
                partition["error_code"] = -1
    return response


def test_exported_offsets_can_be_imported(run_groups, topic, group, tmp_path):
    how = ("--topic", topic, "--to-latest")
    exported = run_groups("reset-offsets", group, *how, "--export", "--dry-run")
    path = tmp_path / "offsets.csv"
    path.write_text(exported.out)

    result = run_groups("reset-offsets", group, "--from-file", path, "--execute")

    assert f"{topic},0,10\n{topic},1,0\n" == exported.out
    assert {(topic, 0): 10, (topic, 1): 0} == new_offsets(result)


@pytest.mark.parametrize(
    "text",
    [
        "{t},0,5\n{t},1,0",
        "{t},0,5\r\n\r\n{t},1,0\r\n\r\n",
        "\ufeff{t}, 0, 5\n  {t} , 1 , 0\n",
        '"{t}","0","5"\n{g},{t},1,0\n',
    ],
)
def test_offsets_file_is_accepted_in_other_csv_styles(
    run_groups, topic, group, tmp_path, text
):
    path = tmp_path / "offsets.csv"
    path.write_bytes(text.format(t=topic, g=group).encode())

    result = run_groups("reset-offsets", group, "--from-file", path, "--dry-run")

    assert {(topic, 0): 5, (topic, 1): 0} == new_offsets(result)


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
def test_invalid_offsets_file_is_named_with_line(
    run_groups, group, tmp_path, text, error
):
    path = tmp_path / "offsets.csv"
    if text is not None:
        path.write_bytes(text)

    result = run_groups("reset-offsets", group, "--from-file", path, "--execute")

    assert 2 == result.code
    assert 1 == len(result.lines), result.err
    assert str(path) in result.err
    assert error in result.err


def test_offsets_file_with_a_missing_partition_changes_nothing(
    run_groups, topic, group, tmp_path
):
    path = tmp_path / "offsets.csv"
    path.write_text(f"{topic},0,1\n{topic},7,1\nno-such-topic,0,1\n")

    result = run_groups("reset-offsets", group, "--from-file", path, "--execute")

    assert 1 == result.code
    assert f"the partitions of topic '{topic}' are 0 to 1" in result.err
    assert "no-such-topic" in result.err
    assert "4" == parse_tables(run_groups("offsets", group).out)[0]["START-OFFSET"]


def test_groups_prints_version(run_groups):
    result = run_groups("--version")

    assert (0, f"sharecons {VERSION}\n") == (result.code, result.out)


def test_reset_of_classic_group_fails(broker, run_groups, topic):
    classic = new_name("classic")

    async def commit():
        async with ShareGroupAdmin(bootstrap_servers=broker.bootstrap_servers) as admin:
            (
                await admin.alter_consumer_group_offsets(
                    classic, {TopicPartition(topic, 0): 1}
                )
            ).check()

    anyio.run(commit)
    result = run_groups(
        "reset-offsets", classic, "--topic", topic, "--to-latest", "--dry-run"
    )

    assert 1 == result.code
    assert result.lines[0].endswith("it is a classic group")


def test_delete_offsets_with_unknown_topic_deletes_the_others(run_groups, topic, group):
    result = run_groups(
        "delete-offsets", group, "--topic", topic, "--topic", f"{topic}x"
    )

    assert 1 == result.code
    assert ["deleted", "UNKNOWN_TOPIC_OR_PARTITION"] == [
        row["STATUS"] for row in parse_tables(result.out)
    ]
    assert 1 == len(result.lines)
    assert "has no offset information" in run_groups("offsets", group).err


def test_delete_reports_status_of_each_group(run_groups, group):
    dry = run_groups("delete", group, "unknown-group", "--dry-run")
    done = run_groups("delete", group, "unknown-group", "--json")

    assert (1, 1) == (dry.code, done.code)
    assert group not in run_groups("list").out
    deleted, missing = json.loads(done.out)
    assert {"group": group, "status": "deleted", "error": None} == deleted
    assert ("unknown-group", "GROUP_ID_NOT_FOUND") == (
        missing["group"],
        missing["status"],
    )


def test_delete_all_groups_deletes_every_group(run_groups, group_at, topic):
    groups = {group_at({(topic, 0): 1}), group_at({(topic, 0): 2})}

    assert groups <= {
        row["GROUP"] for row in parse_tables(run_groups("delete", "--all-groups").out)
    }
    for args in (
        ("list",),
        ("list", "--json"),
        ("describe", "--all-groups"),
        ("members", "--all-groups", "--json"),
        ("delete", "--all-groups"),
    ):
        result = run_groups(*args)

        assert 0 == result.code
        assert ("[]" if "--json" in args else "") == result.out.strip()
        assert NO_GROUPS == result.err


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        (("--state", "Dead"), "share groups in these states"),
        (("--type", "streams"), "groups of these types"),
    ],
)
def test_list_without_matching_groups_has_a_note(run_groups, args, kind):
    result = run_groups("list", *args)

    assert NO_GROUPS.replace("share groups", kind) == result.err
    assert 0 == result.code


def test_note_about_many_groups_is_one_line(run_groups, group_at, topic):
    for _ in range(6):
        group_at({(topic, 0): 1})

    result = run_groups("members", "--all-groups")

    (line,) = result.lines
    assert re.fullmatch(r"note: \d+ share groups have no active members", line)
