"""Settings of the topics that a worker creates for copies of records."""

from sharecons.worker.copy_topics import SourceTopic, creation_of

UNREADABLE = SourceTopic("unreadable", 1, {})


def source(retention: int) -> SourceTopic:
    return SourceTopic(f"kept-{retention}", 1, {"retention.ms": str(retention)})


def retention_for(*sources: SourceTopic) -> str | None:
    return creation_of("orders.dead", sources, 30.0).configs.get("retention.ms")


def test_topic_has_the_longest_retention_of_its_sources() -> None:
    assert "2000" == retention_for(source(1000), source(2000), source(500))


def test_topic_has_no_limit_of_time_if_one_source_has_none() -> None:
    assert "-1" == retention_for(source(1000), source(-1))


def test_topic_has_the_default_retention_if_no_source_can_be_read() -> None:
    assert retention_for() is None
    assert retention_for(UNREADABLE, UNREADABLE) is None


def test_source_that_cannot_be_read_does_not_change_the_retention() -> None:
    assert "1000" == retention_for(UNREADABLE, source(1000))
