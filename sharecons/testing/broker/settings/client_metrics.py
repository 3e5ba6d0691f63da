"""The settings of a subscription of client metrics (KIP-714)."""

from collections.abc import Mapping
from typing import Final

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.errors import ConfigError
from sharecons.testing.broker.settings.setting import Kind, Setting, split_list

__all__ = ["CLIENT_METRICS", "INTERVAL", "MATCH", "METRICS", "check", "patterns_of"]

INTERVAL: Final = "interval.ms"
MATCH: Final = "match"
METRICS: Final = "metrics"

LABELS: Final = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
LOWEST_INTERVAL: Final = 100
HIGHEST_INTERVAL: Final = 3_600_000

CLIENT_METRICS: Final[Mapping[str, Setting]] = {
    setting.name: setting
    for setting in (
        Setting(
            name=INTERVAL,
            kind=Kind.INT,
            default="300000",
            doc="Metrics push interval in milliseconds",
        ),
        Setting(name=MATCH, kind=Kind.LIST, default="", doc="Client match criteria"),
        Setting(
            name=METRICS,
            kind=Kind.LIST,
            default="",
            doc="Telemetry metric name prefix list",
        ),
    )
}


def check(config: Mapping[str, str]) -> None:
    """Check the settings of a subscription.

    Raises:
        ConfigError: a name or a value is invalid.
    """
    code = ErrorCode.invalid_request
    for name, value in config.items():
        if name not in CLIENT_METRICS:
            raise ConfigError(code, f"Unknown client metrics configuration: {name}")
        if problem := CLIENT_METRICS[name].error(value):
            raise ConfigError(ErrorCode.invalid_config, problem)
    interval = int(config.get(INTERVAL, LOWEST_INTERVAL))
    if not LOWEST_INTERVAL <= interval <= HIGHEST_INTERVAL:
        message = (
            f"Invalid value {interval} for {INTERVAL}, interval must be between "
            f"{LOWEST_INTERVAL} and {HIGHEST_INTERVAL} (1 hour)"
        )
        raise ConfigError(code, message)
    patterns_of(config.get(MATCH, ""))


def patterns_of(match: str) -> dict[str, str]:
    """Return the regular expression of each label.

    Raises:
        ConfigError: a label is unknown, or its pattern is missing.
    """
    patterns = {}
    for part in split_list(match):
        label, _, pattern = (each.strip() for each in part.partition("="))
        if label not in LABELS or not pattern:
            message = f"Illegal client matching pattern: {part}"
            raise ConfigError(ErrorCode.invalid_config, message)
        patterns[label] = pattern
    return patterns
