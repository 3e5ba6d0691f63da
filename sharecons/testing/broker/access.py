"""Who may do what (ACLs): everybody everything, until somebody is denied."""

__all__ = ["Access"]


class Access:
    """The ACLs of the cluster."""

    def denies(self, operation: str, resource: str, name: str) -> bool:
        """Tell whether clients are denied an operation.

        `operation` is READ, WRITE, DESCRIBE and so on, `resource` is TOPIC, GROUP,
        CLUSTER or TRANSACTIONAL_ID.
        """
        return False
