"""Access control lists. Without ACLs, every operation is allowed.

The rules are the same as in Kafka's StandardAuthorizer with
allow.everyone.if.no.acl.found=true: a resource without ACLs is open. Once a resource
has ACLs, an operation is denied if a DENY rule matches, else allowed if an ALLOW rule
matches, else denied.

Clients do not authenticate: all of them are one principal on one host.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from sharecons.testing.broker.codec import Request, Response

__all__ = [
    "CLUSTER_NAME",
    "Acl",
    "AclFilter",
    "Authorizer",
    "Operation",
    "Pattern",
    "Permission",
    "Resource",
    "acl_from_creation",
    "filter_from_request",
    "rule_fields",
]

CLUSTER_NAME: Final = "kafka-cluster"
PRINCIPALS: Final = ("User:ANONYMOUS", "User:*")
HOSTS: Final = ("127.0.0.1", "*")
WILDCARD: Final = "*"


class _Code(enum.IntEnum):
    """Numbers in messages; unknown ones are read as UNKNOWN, as in Kafka."""

    @classmethod
    def _missing_(cls, value: object) -> Self:
        return cls(0)


class Resource(_Code):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Pattern(_Code):
    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(_Code):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(_Code):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


IMPLIED: Final = {
    Operation.DESCRIBE: (
        Operation.READ,
        Operation.WRITE,
        Operation.DELETE,
        Operation.ALTER,
    ),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""Operations that are allowed along with others. DENY rules imply nothing."""

OPERATIONS: Final = {
    Resource.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""The operations of a resource for which a response has a bit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acl:
    """One rule. Equal rules are stored once."""

    resource: Resource
    name: str
    pattern: Pattern
    principal: str
    host: str
    operation: Operation
    permission: Permission

    @property
    def is_filter(self) -> bool:
        """True for a filter, which cannot be stored as a rule."""
        return (
            self.resource is Resource.ANY
            or self.pattern in (Pattern.ANY, Pattern.MATCH)
            or self.operation is Operation.ANY
            or self.permission is Permission.ANY
        )

    def matches_resource(self, resource: Resource, name: str) -> bool:
        if self.resource is not resource:
            return False
        if self.pattern is Pattern.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)

    def applies_to(self, operation: Operation) -> bool:
        """Return whether the rule matches the clients' principal and the operation."""
        if self.principal not in PRINCIPALS or self.host not in HOSTS:
            return False
        if self.operation in (Operation.ALL, operation):
            return True
        implied = self.permission is Permission.ALLOW
        return implied and self.operation in IMPLIED.get(operation, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """A filter for ACLs; None and ANY match everything."""

    resource: Resource
    name: str | None
    pattern: Pattern
    principal: str | None
    host: str | None
    operation: Operation
    permission: Permission

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource in (Resource.ANY, acl.resource)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _matches_name(self, acl: Acl) -> bool:
        if self.pattern is Pattern.MATCH:
            return self.name is None or acl.matches_resource(acl.resource, self.name)
        same_pattern = self.pattern in (Pattern.ANY, acl.pattern)
        return same_pattern and self.name in (None, acl.name)


def acl_from_creation(creation: Request) -> Acl:
    """Return the rule that a CreateAcls request creates."""
    return Acl(
        resource=Resource(creation.resource_type),
        name=creation.resource_name,
        pattern=Pattern(creation.resource_pattern_type),
        principal=creation.principal,
        host=creation.host,
        operation=Operation(creation.operation),
        permission=Permission(creation.permission_type),
    )


def filter_from_request(request: Request) -> AclFilter:
    """Return the filter of a DescribeAcls or DeleteAcls request."""
    return AclFilter(
        resource=Resource(request.resource_type_filter),
        name=request.resource_name_filter,
        pattern=Pattern(request.pattern_type_filter),
        principal=request.principal_filter,
        host=request.host_filter,
        operation=Operation(request.operation),
        permission=Permission(request.permission_type),
    )


def rule_fields(acl: Acl) -> Response:
    """Return the fields of a rule in a response, without its resource."""
    return {
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission,
    }


class Authorizer:
    """The ACLs of the cluster."""

    def __init__(self) -> None:
        self._acls: dict[Acl, None] = {}

    def add(self, acl: Acl) -> None:
        self._acls[acl] = None

    def find(self, acl_filter: AclFilter) -> list[Acl]:
        return [acl for acl in self._acls if acl_filter.matches(acl)]

    def remove(self, acls: Iterable[Acl]) -> None:
        for acl in acls:
            self._acls.pop(acl, None)

    def denies(self, operation: str, resource: str, name: str) -> bool:
        """Return whether clients are denied an operation.

        `operation` is READ, WRITE, DESCRIBE and so on, `resource` is TOPIC, GROUP,
        CLUSTER or TRANSACTIONAL_ID.
        """
        # Called for every partition of every fetch; nearly always there are no ACLs.
        if not self._acls:
            return False
        return self._denies(Operation[operation], Resource[resource], name)

    def authorized_operations(self, resource: str, name: str) -> int:
        """Return the operations allowed on a topic, a group or the cluster, as bits."""
        bits = 0
        for operation in OPERATIONS[Resource[resource]]:
            if not self.denies(operation.name, resource, name):
                bits |= 1 << operation
        return bits

    def cluster_operations(self) -> int:
        """Return the operations allowed on the cluster; 0 if DESCRIBE is denied."""
        if self.denies("DESCRIBE", "CLUSTER", CLUSTER_NAME):
            return 0
        return self.authorized_operations("CLUSTER", CLUSTER_NAME)

    def _denies(self, operation: Operation, resource: Resource, name: str) -> bool:
        found = [acl for acl in self._acls if acl.matches_resource(resource, name)]
        permissions = {acl.permission for acl in found if acl.applies_to(operation)}
        if Permission.DENY in permissions:
            return True
        return bool(found) and Permission.ALLOW not in permissions
