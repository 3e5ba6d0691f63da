"""Settings of brokers, topics and groups, with Kafka's names, defaults and bounds."""

__all__ = ["Configs"]


class Configs:
    def group(self, group_id: str, name: str) -> str:
        """Give a group's setting, as it holds now: `share.delivery.count.limit`."""
        raise NotImplementedError

    def topic(self, config: dict[str, str], name: str) -> str:
        """Give a topic's setting, given what was set for the topic."""
        raise NotImplementedError

    def broker(self, name: str) -> str:
        """Give a setting of all brokers: `auto.create.topics.enable`."""
        raise NotImplementedError
