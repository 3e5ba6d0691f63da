"""ACLs: their rules, creation, search and deletion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.testing.broker.acls import (
    Acl,
    AclFilter,
    Authorizer,
    Operation,
    Pattern,
    Permission,
    Resource,
)
from tests.broker.acl_requests import create, creation, delete, describe, filtering
from tests.broker.call_handler import failures, make_cluster

DENY_ALL = {
    "resource": Resource.TOPIC,
    "name": "t",
    "pattern": Pattern.LITERAL,
    "principal": "User:ANONYMOUS",
    "host": "*",
    "operation": Operation.ALL,
    "permission": Permission.DENY,
}
ANY = {
    "resource": Resource.ANY,
    "name": None,
    "pattern": Pattern.ANY,
    "principal": None,
    "host": None,
    "operation": Operation.ANY,
    "permission": Permission.ANY,
}
OPERATIONS_ON_TOPICS = (
    *("READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE"),
    *("DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
)


def acl(**changes):
    return Acl(**{**DENY_ALL, **changes})


def access_with(*acls):
    access = Authorizer()
    for each in acls:
        access.add(each)
    return access


def allowed_on(access, name="t"):
    return {
        operation
        for operation in OPERATIONS_ON_TOPICS
        if not access.denies(operation, "TOPIC", name)
    }


def test_without_acls_every_operation_is_allowed():
    assert set(OPERATIONS_ON_TOPICS) == allowed_on(access_with())
    assert 3576 == access_with().authorized_operations("TOPIC", "t")
    assert 8096 == access_with().authorized_operations("CLUSTER", "kafka-cluster")


def test_acl_applies_to_its_resource_only():
    access = access_with(acl())

    assert set() == allowed_on(access)
    assert set(OPERATIONS_ON_TOPICS) == allowed_on(access, "other")
    assert not access.denies("READ", "GROUP", "t")


def test_deny_rule_alone_allows_no_other_operation():
    """A resource with ACLs is closed to clients without an ALLOW rule."""
    assert set() == allowed_on(access_with(acl(operation=Operation.READ)))


def test_deny_rule_overrides_allow_rule():
    access = access_with(
        acl(permission=Permission.ALLOW), acl(operation=Operation.WRITE)
    )

    assert set(OPERATIONS_ON_TOPICS) - {"WRITE"} == allowed_on(access)


@pytest.mark.parametrize(
    ("operation", "allowed"),
    [
        (Operation.READ, {"READ", "DESCRIBE"}),
        (Operation.WRITE, {"WRITE", "DESCRIBE"}),
        (Operation.DELETE, {"DELETE", "DESCRIBE"}),
        (Operation.ALTER, {"ALTER", "DESCRIBE"}),
        (Operation.DESCRIBE, {"DESCRIBE"}),
        (Operation.CREATE, {"CREATE"}),
        (Operation.ALTER_CONFIGS, {"ALTER_CONFIGS", "DESCRIBE_CONFIGS"}),
        (Operation.ALL, set(OPERATIONS_ON_TOPICS)),
    ],
)
def test_allow_rule_implies_describe_operations(operation, allowed):
    access = access_with(acl(operation=operation, permission=Permission.ALLOW))

    assert allowed == allowed_on(access)


@pytest.mark.parametrize(
    ("changes", "denied"),
    [
        ({"pattern": Pattern.PREFIXED}, {"t", "topic"}),
        ({"name": "*"}, {"t", "topic", "other"}),
        ({"name": "*", "pattern": Pattern.PREFIXED}, set()),
        ({}, {"t"}),
    ],
)
def test_pattern_selects_resource_names(changes, denied):
    access = access_with(acl(**changes))

    names = {"t", "topic", "other"}
    assert denied == {n for n in names if access.denies("READ", "TOPIC", n)}


@pytest.mark.parametrize(
    ("changes", "denied"),
    [
        ({"principal": "User:*"}, True),
        ({"principal": "User:other"}, False),
        ({"host": "127.0.0.1"}, True),
        ({"host": "1.2.3.4"}, False),
    ],
)
def test_acl_applies_to_its_principal_and_host_only(changes, denied):
    for_all = acl(permission=Permission.ALLOW)
    access = access_with(for_all, acl(**changes))

    assert denied == access.denies("READ", "TOPIC", "t")


rules = st.builds(
    acl,
    resource=st.sampled_from([Resource.TOPIC, Resource.GROUP]),
    name=st.sampled_from(["t", "to", "*", "other"]),
    pattern=st.sampled_from([Pattern.LITERAL, Pattern.PREFIXED]),
    principal=st.sampled_from(["User:ANONYMOUS", "User:x"]),
    operation=st.sampled_from([Operation.READ, Operation.WRITE, Operation.ALL]),
    permission=st.sampled_from([Permission.ALLOW, Permission.DENY]),
)
filters = st.builds(
    AclFilter,
    resource=st.sampled_from([Resource.ANY, Resource.TOPIC]),
    name=st.sampled_from([None, "t", "topic", "*"]),
    pattern=st.sampled_from(
        [Pattern.ANY, Pattern.MATCH, Pattern.LITERAL, Pattern.PREFIXED]
    ),
    principal=st.sampled_from([None, "User:x"]),
    host=st.just(None),
    operation=st.sampled_from([Operation.ANY, Operation.READ]),
    permission=st.sampled_from([Permission.ANY, Permission.DENY]),
)


@given(st.lists(rules), filters)
def test_filter_returns_exactly_the_matching_acls(acls, acl_filter):
    access = access_with(*acls)
    found = access.find(acl_filter)
    access.remove(found)

    left = access.find(AclFilter(**ANY))
    assert set(acls) == {*found, *left}
    assert not set(found) & set(left)
    assert [] == access.find(acl_filter)


@given(st.lists(rules), st.sampled_from(["t", "topic", "other"]))
def test_match_filter_finds_all_acls_of_a_name(acls, name):
    access = access_with(*acls)
    filter_fields = {
        **ANY,
        "resource": Resource.TOPIC,
        "pattern": Pattern.MATCH,
        "name": name,
    }
    found = access_with(*access.find(AclFilter(**filter_fields)))

    assert allowed_on(access, name) == allowed_on(found, name)


def test_acl_created_twice_is_stored_once():
    cluster = make_cluster()
    create(cluster, creation(), creation())
    create(cluster, creation())

    assert {(2, "t", 3): ["User:ANONYMOUS"]} == describe(cluster)


def test_acls_are_described_by_resource():
    cluster = make_cluster()
    create(
        cluster,
        creation(),
        creation(principal="User:x"),
        creation(resource_type=3),
        creation(resource_pattern_type=4),
    )

    assert {
        (2, "t", 3): ["User:ANONYMOUS", "User:x"],
        (3, "t", 3): ["User:ANONYMOUS"],
        (2, "t", 4): ["User:ANONYMOUS"],
    } == describe(cluster)


def test_overlapping_filters_both_return_the_deleted_acl():
    cluster = make_cluster()
    create(cluster, creation())
    results = delete(cluster, filtering(), filtering())

    assert [1, 1] == [len(result.matching_acls) for result in results]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resource_name": ""}, "Invalid empty resource name"),
        (
            {"resource_type": 4, "resource_name": "x"},
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        ({"resource_type": 77}, "Invalid resourceType UNKNOWN"),
        ({"operation": 55}, "Invalid operation UNKNOWN"),
        (
            {"principal": "ANONYMOUS"},
            "Could not parse principal from `ANONYMOUS` (no colon is present "
            "separating the principal type from the principal name)",
        ),
    ],
)
def test_invalid_acl_is_rejected_and_others_are_created(changes, message):
    cluster = make_cluster()
    results = create(cluster, creation(**changes), creation(resource_name="u"))

    assert [("invalid_request", message), ("none", "")] == failures(results)
    assert [(2, "u", 3)] == list(describe(cluster))


@pytest.mark.parametrize(
    "changes",
    [
        {"resource_type": 1},
        {"resource_pattern_type": 1},
        {"resource_pattern_type": 2},
        {"operation": 1},
        {"permission_type": 1},
    ],
)
def test_filter_instead_of_an_acl_fails_the_request(changes):
    cluster = make_cluster()
    results = create(cluster, creation(**changes), creation())

    assert 2 * [("unknown_server_error", None)] == failures(results)
    assert {} == describe(cluster)


def test_filter_with_unknown_type_is_rejected():
    cluster = make_cluster()
    create(cluster, creation())

    assert {} == describe(cluster, resource_type_filter=77)
    results = delete(
        cluster, filtering(operation=77), filtering(pattern_type_filter=77)
    )
    assert [
        ("invalid_request", "Unknown entryFilter."),
        ("invalid_request", "Unknown patternFilter."),
    ] == failures(results)
    assert describe(cluster)
