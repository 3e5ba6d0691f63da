"""What goes wrong between wanting a Kafka and having one."""

__all__ = ["LaunchError"]


class LaunchError(RuntimeError):
    """Kafka cannot be fetched or run here; the message says what was tried."""
