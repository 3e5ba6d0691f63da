"""Which handler a record has."""

from sharecons import RetryTopic
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.machine.topic_settings import TopicSettings
from sharecons.worker.retry_topics import RetryTopics
from tests.worker.machine.simulated_worker import FakeRecord, retry_record


def with_retry(*names: str, delay: float = 20.0, **options: str) -> HandlerSettings:
    topics = [RetryTopic(name, delay + n) for n, name in enumerate(names)]
    return HandlerSettings(
        retry_topics=RetryTopics(topics), dead_letter=options.get("dead_letter")
    )


def test_record_of_a_topic_has_the_handler_of_the_topic() -> None:
    orders, refunds = HandlerSettings(), HandlerSettings()
    topics = TopicSettings(
        {"orders": orders, "returns": refunds, "refunds": refunds}, "billing"
    )

    assert (orders, refunds) == topics.handlers
    assert (orders, None) == topics.find(FakeRecord(topic="orders"))
    assert (refunds, None) == topics.find(FakeRecord(topic="returns"))


def test_record_of_a_shared_retry_topic_returns_to_the_handler_of_its_origin() -> None:
    orders, refunds = with_retry("later"), with_retry("later")
    topics = TopicSettings({"orders": orders, "refunds": refunds}, "billing")

    for source, expected in (("orders", orders), ("refunds", refunds)):
        settings, state = topics.find(retry_record(7, 10.0, 0.0, source=source))

        assert settings is expected
        assert state is not None
        assert (source, 7) == (state.origin.topic, state.origin.offset)


def test_origin_decides_even_if_another_handler_has_the_retry_topic_now() -> None:
    orders, refunds = HandlerSettings(), with_retry("later")
    topics = TopicSettings({"orders": orders, "refunds": refunds}, "billing")

    settings, _ = topics.find(retry_record(0, 10.0, 0.0, source="orders"))

    assert settings is orders
    assert 30.0 == topics.longest_delay("later")


def test_record_without_a_known_origin_has_the_only_handler_of_its_topic() -> None:
    orders, refunds = HandlerSettings(), with_retry("later")
    topics = TopicSettings({"orders": orders, "refunds": refunds}, "billing")
    unknown = retry_record(0, 10.0, 0.0, source="former")

    assert (refunds, None) == topics.find(FakeRecord(topic="later"))
    assert refunds is topics.find(unknown)[0]


def test_record_without_a_known_origin_has_no_handler_in_a_shared_topic() -> None:
    first = with_retry("later")
    second = with_retry("later", dead_letter="dead")
    topics = TopicSettings({"orders": first, "refunds": second}, "billing")
    unknown = retry_record(0, 10.0, 0.0, source="former")

    assert (None, None) == topics.find(FakeRecord(topic="later"))
    assert topics.find(unknown)[0] is None
    assert second is topics.substitute("later"), "it has a dead-letter topic"


def test_topics_of_a_handler_include_the_retry_topics_that_only_it_has() -> None:
    orders = with_retry("later", "orders.later")
    refunds = with_retry("later", "refunds.later")
    topics = TopicSettings(
        {"orders": orders, "returns": refunds, "refunds": refunds}, "billing"
    )

    assert {"later", "orders.later", "refunds.later"} == topics.retry_topics
    assert {"orders", "orders.later"} == topics.topics_of(orders)
    assert {"returns", "refunds", "refunds.later"} == topics.topics_of(refunds)
