"""`sharecons groups` on the embedded broker: what it shows, and what it does."""

import json
import re

import anyio
import pytest

from sharecons import ShareGroupAdmin, TopicPartition
from tests.broker.clients import new_name
from tests.cli.asking import rows, sharecons


@pytest.fixture
def ask(broker):
    def asked(*args):
        return sharecons(
            "groups", *args, "--bootstrap-server", broker.bootstrap_servers
        )

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
                (await admin.alter_offsets(group, wanted)).check()

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

    answers = [sharecons(*way) for way in ways]

    assert 1 == len({answer.out for answer in answers})
    assert [0] * 4 == [answer.code for answer in answers]
    assert group in answers[0].out


def test_bootstrap_servers_from_the_environment(broker, group, monkeypatch):
    monkeypatch.setenv("SHARECONS_BOOTSTRAP_SERVERS", broker.bootstrap_servers)

    answer = sharecons("groups", "list")

    assert group in answer.out.splitlines()


def test_describe_shows_state_and_offsets(ask, topic, group):
    answer = ask("describe", group)

    state, offsets = rows(answer.out)
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
    assert [group] == [row["GROUP"] for row in rows(answer.out)]
    (line,) = answer.lines
    assert line.startswith(f"sharecons groups: cannot describe share group '{group}x'")
    assert line.endswith(f"; '{group}' is meant, perhaps")


def test_an_empty_listing_is_an_empty_list(ask):
    answer = ask("list", "--state", "Dead", "--json")

    assert (0, []) == (answer.code, json.loads(answer.out))


def test_groups_of_other_types_are_listed_when_asked_for(broker, ask, topic, group):
    classic = new_name("classic")

    async def commit():
        async with ShareGroupAdmin(broker.bootstrap_servers) as admin:
            (await admin.commit_offsets(classic, {TopicPartition(topic, 0): 1})).check()

    anyio.run(commit)
    every = {
        row["GROUP"]: row["TYPE"] for row in rows(ask("list", "--type", "all").out)
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

    assert (0, ["30000"]) == (good.code, [row["VALUE"] for row in rows(good.out)])
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
    (after,) = rows(ask("offsets", group).out)

    assert dry.out == done.out
    (row,) = rows(done.out)
    assert ("10", "4") == (row["NEW-OFFSET"], row["OLD-OFFSET"])
    assert "nothing was changed" in dry.err
    assert ("10", "0") == (after["START-OFFSET"], after["LAG"])


def test_a_reset_with_one_bad_partition_changes_nothing(ask, topic, group):
    answer = ask(
        "reset-offsets", group, "--topic", f"{topic}:0,7", "--to-latest", "--execute"
    )
    (after,) = rows(ask("offsets", group).out)

    assert (1, "") == (answer.code, answer.out)
    assert f"the partitions of topic '{topic}' are 0 to 1" in answer.lines[0]
    assert "4" == after["START-OFFSET"]


def test_a_misspelt_topic_is_guessed(ask, topic, group):
    answer = ask(
        "reset-offsets", group, "--topic", topic[1:], "--to-latest", "--execute"
    )

    assert 1 == answer.code
    assert answer.lines[0].endswith(f"'{topic}' is meant, perhaps")


def test_a_group_of_another_type_is_not_reset(broker, ask, topic):
    classic = new_name("classic")

    async def commit():
        async with ShareGroupAdmin(broker.bootstrap_servers) as admin:
            (await admin.commit_offsets(classic, {TopicPartition(topic, 0): 1})).check()

    anyio.run(commit)
    answer = ask("reset-offsets", classic, "--topic", topic, "--to-latest", "--dry-run")

    assert 1 == answer.code
    assert answer.lines[0].endswith("it is a classic group")


def test_topics_are_forgotten_each_for_itself(ask, topic, group):
    answer = ask("delete-offsets", group, "--topic", topic, "--topic", f"{topic}x")

    assert 1 == answer.code
    assert ["deleted", "UNKNOWN_TOPIC_OR_PARTITION"] == [
        row["STATUS"] for row in rows(answer.out)
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

    assert groups <= {row["GROUP"] for row in rows(ask("delete", "--all-groups").out)}
    assert "" == ask("list").out
    assert 0 == ask("delete", "--all-groups").code


def test_many_groups_that_lack_something_are_told_of_in_one_line(ask, stand, topic):
    for _ in range(6):
        stand({(topic, 0): 1})

    answer = ask("members", "--all-groups")

    (line,) = answer.lines
    assert re.fullmatch(r"note: \d+ share groups have no active members", line)
