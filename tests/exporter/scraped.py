"""A scrape, parsed into values by name and labels."""

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sharecons.exporter.metrics import make_registry

GROUP = "kafka_share_group_"


class Scrape:
    """The samples of one text."""

    def __init__(self, text):
        self.text = text
        self._samples = [
            sample
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        ]

    @property
    def names(self):
        return {sample.name for sample in self._samples}

    def value(self, name, **labels):
        """Return the only sample of this name with these labels, or None."""
        values = self.values(name, **labels)
        assert len(values) < 2, values
        return values[0] if values else None

    def values(self, name, **labels):
        return [
            sample.value
            for sample in self._samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]

    def by(self, label, name, **labels):
        """Return values by one of their labels."""
        return {
            sample.labels[label]: sample.value
            for sample in self._samples
            if sample.name == name and labels.items() <= sample.labels.items()
        }


def scrape(metrics):
    return Scrape(generate_latest(make_registry(metrics)).decode())
