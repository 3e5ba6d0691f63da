"""Producer ids and transactions."""

__all__ = ["Transactions"]


class Transactions:
    pass
