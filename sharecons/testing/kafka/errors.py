"""The error of a Kafka that cannot be started."""

__all__ = ["LaunchError"]


class LaunchError(RuntimeError):
    """Kafka cannot be downloaded or run; the message has all attempts."""
