"""Requests that create, describe and delete ACLs."""

from tests.broker.call_handler import call_api

__all__ = ["create", "creation", "delete", "describe", "filtering"]


def creation(**changes):
    return {
        "resource_type": 2,
        "resource_name": "t",
        "resource_pattern_type": 3,
        "principal": "User:ANONYMOUS",
        "host": "*",
        "operation": 2,
        "permission_type": 2,
        **changes,
    }


def filtering(**changes):
    return {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
        **changes,
    }


def create(cluster, *creations, version=3):
    return call_api(cluster, "create_acls", version, creations=creations).results


def describe(cluster, version=3, **changes):
    response = call_api(cluster, "describe_acls", version, **filtering(**changes))
    assert not response.error_code
    return {
        (resource.resource_type, resource.resource_name, resource.pattern_type): [
            each.principal for each in resource.acls
        ]
        for resource in response.resources
    }


def delete(cluster, *filters, version=3):
    return call_api(cluster, "delete_acls", version, filters=filters).filter_results
