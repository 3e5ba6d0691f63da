"""The application's settings of fetches."""

from dataclasses import dataclass

__all__ = ["FetchSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """The user's fetch settings, in seconds and bytes."""

    group_id: str
    member_id: str
    max_wait: float
    min_bytes: int
    max_bytes: int
    max_records: int
    record_limit: bool

    @property
    def log_fields(self) -> dict[str, str]:
        """The fields of all log lines of the member."""
        return {"group": self.group_id, "member": self.member_id}
