"""The store of a ledger: durability, exclusive writing, and recovery."""

import zlib

import pytest

from sharecons.errors import ConfigurationError
from sharecons.spark.errors import (
    LedgerError,
    LedgerLostError,
    LedgerMismatchError,
    LedgerTakenError,
)
from sharecons.spark.ledger import AcquiredRange
from sharecons.spark.store import REMOVALS_PER_CALL, Store
from tests.spark.memory_storage import Killed, MemoryStorage

ORDERS = bytes(range(16))


def acquired(first, last, count=1):
    return AcquiredRange("orders", ORDERS, 0, first, last, count)


def open_store(storage, group_id="billing"):
    store = Store(storage)
    return store, store.open(group_id)


def append_new(store, ledger, *ranges):
    new = ledger.select_new(ranges)
    store.append(new)
    ledger.append(new)


def everything(ledger):
    return ledger.ranges_between(ledger.begin, ledger.end)


# Restarts.


def test_new_ledger_is_empty_and_has_a_member_id():
    store, ledger = open_store(MemoryStorage())

    assert (0, 0) == (ledger.begin, ledger.end)
    assert 22 == len(store.member_id)


def test_restart_finds_segments_and_member_id():
    storage = MemoryStorage()
    store, ledger = open_store(storage)
    append_new(store, ledger, acquired(0, 9))
    append_new(store, ledger, acquired(5, 14, count=2), acquired(90, 99))
    again, found = open_store(storage)

    assert store.identity == again.identity
    assert everything(ledger) == everything(found)
    assert ledger.topics == found.topics


def test_empty_segment_writes_nothing():
    storage = MemoryStorage()
    store, _ = open_store(storage)
    store.append([])

    assert 1 == len(storage.files)


def test_restart_after_a_trim_finds_kept_and_redeliverable_offsets():
    storage = MemoryStorage()
    store, ledger = open_store(storage)
    append_new(store, ledger, acquired(0, 9))
    append_new(store, ledger, acquired(20, 29))
    ledger.trim(12)
    ledger.set_start_offset(ORDERS, 0, 5)
    store.trim(ledger)
    _, found = open_store(storage)

    assert (12, 20) == (found.begin, found.end)
    assert [acquired(22, 29)] == everything(found)
    assert [] == found.select_new([acquired(5, 9, 2), acquired(20, 29, 2)])


def test_segment_is_removed_when_its_last_offset_is_committed():
    storage = MemoryStorage()
    store, ledger = open_store(storage)
    append_new(store, ledger, acquired(0, 9))
    ledger.trim(9)
    store.trim(ledger)

    assert not store.remove_old_entries()
    assert ["opened", "acquired"] == kinds(storage)

    ledger.trim(10)
    store.trim(ledger)
    assert ["opened", "acquired", "trimmed"] == kinds(storage)
    assert not store.remove_old_entries()

    assert ["trimmed"] == kinds(storage)


def kinds(storage):
    words = ("opened", "acquired", "trimmed")
    return [
        next(word for word in words if f'"kind":"{word}"'.encode() in data)
        for _, data in sorted(storage.files.items())
    ]


def test_interrupted_removal_is_finished_by_the_next_driver():
    storage = MemoryStorage()
    store, ledger = open_store(storage)
    for number in range(5):
        append_new(store, ledger, acquired(number * 10, number * 10 + 4))
    ledger.trim(15)
    store.trim(ledger)
    storage.removals_left = 2
    with pytest.raises(Killed):
        store.remove_old_entries()
    again, found = open_store(storage)

    assert 15 == found.begin
    assert everything(ledger) == everything(found)

    assert not again.remove_old_entries()

    assert [*["acquired"] * 2, "trimmed", "opened"] == kinds(storage)


def test_removal_is_limited_per_call():
    storage = MemoryStorage()
    store, ledger = open_store(storage)
    for number in range(20):
        append_new(store, ledger, acquired(number * 10, number * 10 + 4))
    ledger.trim(ledger.end)
    store.trim(ledger)

    assert store.remove_old_entries()
    assert 20 + 2 - REMOVALS_PER_CALL == len(storage.files)
    assert not store.remove_old_entries()
    assert ["trimmed"] == kinds(storage)


def test_failed_removal_of_old_entries_is_harmless():
    class Undeletable(MemoryStorage):
        def remove(self, name):
            raise PermissionError("not allowed")

    storage = Undeletable()
    store, ledger = open_store(storage)
    append_new(store, ledger, acquired(0, 9))
    ledger.trim(10)
    store.trim(ledger)
    assert not store.remove_old_entries()
    append_new(store, ledger, acquired(20, 29))
    _, found = open_store(storage)

    assert [acquired(20, 29)] == everything(found)


def test_id_of_a_recreated_topic_survives_a_restart():
    storage = MemoryStorage()
    recreated = bytes(range(1, 17))
    store, ledger = open_store(storage)
    append_new(store, ledger, acquired(0, 9))
    append_new(store, ledger, acquired(20, 29))
    ledger.check_topics({"orders": recreated}, allow_recreated=True)
    ledger.trim(15)
    store.trim(ledger)
    _, found = open_store(storage)

    assert {"orders": recreated} == found.topics


def test_long_history_is_read_completely_and_in_order():
    storage = MemoryStorage()
    store, ledger = open_store(storage)
    for number in range(200):
        append_new(store, ledger, acquired(number * 20, number * 20 + 9, number + 1))
    _, found = open_store(storage)

    assert everything(ledger) == everything(found)


def test_unneeded_entry_removed_while_reading_is_not_missed():
    class Late(MemoryStorage):
        def list_names(self):
            return ["00000000000000000000.jsonl", *super().list_names()]

    storage, late = MemoryStorage(), Late()
    late.files = storage.files
    store, ledger = open_store(storage)
    append_new(store, ledger, acquired(0, 9))
    ledger.trim(10)
    store.trim(ledger)
    store.remove_old_entries()
    _, found = open_store(late)

    assert 10 == found.begin


# Loads.


def test_next_driver_finds_a_load():
    storage = MemoryStorage()
    store, ledger = open_store(storage)
    append_new(store, ledger, acquired(0, 9))
    store.begin_load("one", 3)
    append_new(store, ledger, acquired(20, 29))
    load = store.complete_load("one")

    assert (3, 10) == (load.start, load.ledger_end)
    assert [(3, 10), (10, 20)] == load.ranges
    assert load.is_complete
    assert load == open_store(storage)[0].get_load("one")
    assert load == Store(storage).read("billing").loads.get("one")


def test_append_after_complete_load_is_an_error():
    store, ledger = open_store(MemoryStorage())
    store.begin_load("one", 0)
    store.complete_load("one")

    with pytest.raises(LedgerError, match="is closed"):
        append_new(store, ledger, acquired(0, 9))


def test_unfinished_load_ends_where_the_next_driver_starts():
    storage = MemoryStorage()
    store, ledger = open_store(storage)
    store.begin_load("one", 0)
    append_new(store, ledger, acquired(0, 9))
    store, ledger = open_store(storage)
    append_new(store, ledger, acquired(20, 29))

    for load in (
        store.get_load("one"),
        Store(storage).read("billing").loads.get("one"),
    ):
        assert ((0, 10),) == load.spans
        assert not load.is_complete


@pytest.mark.parametrize("committed", [10, 30])
def test_loads_survive_snapshots_and_removals(committed):
    storage = MemoryStorage()
    store, ledger = open_store(storage)
    store.begin_load("one", 0)
    append_new(store, ledger, acquired(0, 9))
    done = store.complete_load("one")
    store, ledger = open_store(storage)
    store.begin_load("two", 10)
    append_new(store, ledger, acquired(20, 29))
    store, ledger = open_store(storage)
    append_new(store, ledger, acquired(40, 49))
    ledger.trim(committed)
    store.trim(ledger)
    while store.remove_old_entries():
        pass
    again, found = open_store(storage)

    assert committed == found.begin
    assert done == again.get_load("one")
    assert ((10, 20),) == again.get_load("two").spans
    assert again.get_load("three") is None


def test_ledger_without_loads_has_version_1():
    storage = MemoryStorage()
    store, ledger = open_store(storage)
    append_new(store, ledger, acquired(0, 9))
    ledger.trim(10)
    store.trim(ledger)

    assert all(b'{"version":1,' in data for data in storage.files.values())


def test_read_writes_nothing_and_does_not_affect_the_driver():
    storage = MemoryStorage()
    store, ledger = open_store(storage)
    append_new(store, ledger, acquired(0, 9))
    files = dict(storage.files)

    assert [acquired(0, 9)] == everything(Store(storage).read("billing").ledger)
    assert files == storage.files
    append_new(store, ledger, acquired(10, 19))
    store.check_ownership()


def test_read_is_repeated_if_a_driver_removes_entries():
    class Moving(MemoryStorage):
        def list_names(self):
            names = super().list_names()
            if len(names) > 3:
                # After the names are listed, before the first entry is read.
                ledger.trim(5)
                store.trim(ledger)
                store.remove_old_entries()
            return names

    storage, moving = MemoryStorage(), Moving()
    moving.files = storage.files
    store, ledger = open_store(storage)
    append_new(store, ledger, acquired(0, 4))
    append_new(store, ledger, acquired(20, 24))
    store.begin_load("one", 10)

    assert [acquired(20, 24)] == everything(Store(moving).read("billing").ledger)


def test_read_of_another_groups_ledger_is_rejected():
    storage = MemoryStorage()
    open_store(storage)

    with pytest.raises(LedgerMismatchError):
        Store(storage).read("shipping")


# Several drivers.


def test_older_driver_fails_at_its_next_write():
    storage = MemoryStorage()
    old, ledger = open_store(storage)
    open_store(storage)

    with pytest.raises(LedgerTakenError, match="another driver took over the ledger"):
        append_new(old, ledger, acquired(0, 9))


def test_older_driver_cannot_trim():
    storage = MemoryStorage()
    old, ledger = open_store(storage)
    append_new(old, ledger, acquired(0, 9))
    open_store(storage)
    ledger.trim(10)

    with pytest.raises(LedgerTakenError):
        old.trim(ledger)
    assert [acquired(0, 9)] == everything(open_store(storage)[1])


def test_check_ownership_detects_a_newer_driver():
    storage = MemoryStorage()
    old, _ = open_store(storage)
    old.check_ownership()
    open_store(storage)

    with pytest.raises(LedgerTakenError):
        old.check_ownership()


def test_check_ownership_detects_deleted_entries():
    storage = MemoryStorage()
    store = Store(storage)
    store.open("billing")
    store.check_ownership()
    storage.files.clear()

    with pytest.raises(LedgerLostError, match="was deleted while this query used it"):
        store.check_ownership()


def test_concurrent_open_fails_for_one_driver():
    class Contended(MemoryStorage):
        def list_names(self):
            names = super().list_names()
            if not self.files:
                # Another driver writes the entry after the names were listed.
                self.files["00000000000000000000.jsonl"] = b"of another driver"
            return names

    with pytest.raises(LedgerTakenError):
        open_store(Contended())


def test_entry_removed_while_opening_means_another_driver():
    class Vanishing(MemoryStorage):
        def read(self, name):
            raise FileNotFoundError(name)

    storage = Vanishing()
    storage.files["00000000000000000000.jsonl"] = b""

    with pytest.raises(LedgerTakenError):
        open_store(storage)


def test_own_entry_sent_twice_is_not_another_driver():
    storage = MemoryStorage()
    store, ledger = open_store(storage)
    storage.fault = "repeated"
    append_new(store, ledger, acquired(0, 9))
    append_new(store, ledger, acquired(10, 19))

    assert [acquired(0, 19)] == everything(open_store(storage)[1])


@pytest.mark.parametrize("fault", ["failed", "response lost"])
def test_store_must_be_opened_again_after_an_error(fault):
    storage = MemoryStorage()
    store, ledger = open_store(storage)
    storage.fault = fault
    with pytest.raises(LedgerError, match="could not be written: TimeoutError"):
        append_new(store, ledger, acquired(0, 9))
    with pytest.raises(LedgerError, match="open it again"):
        append_new(store, ledger, acquired(20, 29))
    ledger = store.open("billing")
    append_new(store, ledger, acquired(0, 9, count=2))

    count = 1 if fault == "response lost" else 2
    assert [acquired(0, 9, count)] == everything(ledger)


def test_closed_store_rejects_writes():
    store, ledger = open_store(MemoryStorage())
    store.close()

    with pytest.raises(LedgerError, match="is closed"):
        append_new(store, ledger, acquired(0, 9))


# Errors.


def test_ledger_of_another_group_is_rejected():
    storage = MemoryStorage()
    open_store(storage)

    with pytest.raises(LedgerMismatchError, match="belongs to the group billing, not"):
        open_store(storage, "shipping")


def test_group_is_known_after_the_first_entry_is_removed():
    storage = MemoryStorage()
    store, ledger = open_store(storage)
    append_new(store, ledger, acquired(0, 9))
    ledger.trim(10)
    store.trim(ledger)
    store.remove_old_entries()

    assert ["trimmed"] == kinds(storage)
    with pytest.raises(LedgerMismatchError):
        open_store(storage, "shipping")


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_missing_entry_is_named_in_the_error(lost):
    storage = MemoryStorage()
    store, ledger = open_store(storage)
    for number in range(3):
        append_new(store, ledger, acquired(number * 20, number * 20 + 9))
    name = f"{lost:020d}.jsonl"
    del storage.files[name]

    with pytest.raises(
        LedgerLostError, match=f"the entry {name} of the ledger in .* is missing"
    ):
        open_store(storage)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[1]\n",
        b"{}\n",
        b'{"version":1,"kind":"trimmed"}\n',
        b'{"version":1,"kind":"opened","ledger":{"name":"x"}}\n',
        b'{"version":1,"kind":"acquired","position":0,"topics":[]}\n[0,0,0,9,1]\n',
        b'{"version":1,"kind":"acquired","position":0,"topics":[["a","0"]]}\n[0]\n',
        b"[" * 10_000 + b"\n",
    ],
    ids=range(8),
)
def test_entry_with_a_correct_checksum_and_invalid_content_is_lost(body):
    storage = MemoryStorage()
    name = f"{0:020d}.jsonl"
    storage.files[name] = body + b'{"crc32":%d}\n' % zlib.crc32(body)

    with pytest.raises(LedgerLostError, match="whose content is not"):
        Store(storage).read("billing")


def test_damaged_entry_is_named_in_the_error():
    storage = MemoryStorage()
    store, ledger = open_store(storage)
    append_new(store, ledger, acquired(0, 9))
    name = max(storage.files)
    storage.files[name] = storage.files[name].replace(b"9,1]", b"8,1]")

    with pytest.raises(LedgerLostError, match=f"{name} is damaged"):
        open_store(storage)


def test_swapped_entries_are_an_error():
    storage = MemoryStorage()
    store, ledger = open_store(storage)
    append_new(store, ledger, acquired(0, 9))
    append_new(store, ledger, acquired(20, 24))
    first, second = sorted(storage.files)[1:]
    files = storage.files
    files[first], files[second] = files[second], files[first]

    with pytest.raises(LedgerLostError, match="does not continue the entry"):
        open_store(storage)


def test_other_files_are_ignored():
    storage = MemoryStorage()
    storage.files["README"] = b"what is this?"
    open_store(storage)

    assert 2 == len(storage.files)


def test_storage_that_cannot_be_listed_is_an_error():
    class Closed(MemoryStorage):
        def list_names(self):
            raise PermissionError("not yours")

    with pytest.raises(LedgerError, match="could not be listed: PermissionError"):
        open_store(Closed())


def test_empty_group_id_is_rejected():
    with pytest.raises(ConfigurationError):
        open_store(MemoryStorage(), "")
