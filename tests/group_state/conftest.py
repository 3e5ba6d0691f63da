"""Fixtures: both Kafkas, and an admin client."""

from tests.exporter.conftest import admin, group, kafka

__all__ = ["admin", "group", "kafka"]
