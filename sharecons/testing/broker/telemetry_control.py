"""Client telemetry as a test uses it: subscribe to metrics, read the pushes."""

from sharecons.testing.broker.errors import ConfigError
from sharecons.testing.broker.hangs import Run
from sharecons.testing.broker.settings.changes import Change, Operation
from sharecons.testing.broker.settings.client_metrics import INTERVAL, MATCH, METRICS
from sharecons.testing.broker.settings.validation import SettingError
from sharecons.testing.broker.telemetry import ALL_METRICS, Push, Telemetry

__all__ = ["TelemetryControl"]


class TelemetryControl:
    """The client telemetry of a cluster: `EmbeddedBroker.telemetry`."""

    def __init__(self, telemetry: Telemetry, call: Run) -> None:
        self._telemetry = telemetry
        self._call = call

    def enable(self) -> None:
        """Announce the APIs to clients that connect from now on.

        Real brokers announce them if one of their `metric.reporters` is a
        ClientTelemetry.
        """
        self._call(self._enable)

    def subscribe(
        self,
        *metrics: str,
        interval: float = 300.0,
        match: str = "",
        name: str = "all",
    ) -> None:
        """Subscribe to metrics, by the beginnings of their names; also `enable`.

        Args:
            metrics: "*", the default, is all of them.
            interval: seconds between two pushes of a client.
            match: the clients, such as "client_id=billing.*"; all by default.
            name: of the subscription, which this replaces.

        Raises:
            SettingError: a value is invalid.
        """
        values = {
            METRICS: ",".join(metrics or (ALL_METRICS,)),
            INTERVAL: str(round(interval * 1000)),
            MATCH: match,
        }
        changes = [Change(key, Operation.SET, value) for key, value in values.items()]

        def change() -> None:
            self._enable()
            self._telemetry.configs.alter_client_metrics(name, changes)

        try:
            self._call(change)
        except ConfigError as error:
            raise SettingError(str(error)) from None

    def unsubscribe(self, name: str = "all") -> None:
        """Delete a subscription."""
        changes = [Change(key, Operation.DELETE) for key in (METRICS, INTERVAL, MATCH)]
        configs = self._telemetry.configs
        self._call(lambda: configs.alter_client_metrics(name, changes))

    @property
    def pushes(self) -> list[Push]:
        """The pushes that the brokers have accepted, in order."""
        return list(self._telemetry.pushes)

    def _enable(self) -> None:
        self._telemetry.is_enabled = True
