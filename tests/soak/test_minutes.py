"""Records/s and latencies by the minute."""

from tests.soak.minutes import Deliveries, Latency, split


def deliveries(*pairs: tuple[float, float | None]) -> Deliveries:
    made = Deliveries()
    for handled, latency in pairs:
        made.add(handled, latency)
    return made


def test_records_are_counted_in_the_minute_of_their_handling() -> None:
    made = deliveries(*[(100.0 + n, 0.01) for n in range(150)])

    minutes = split(made, [], begin=100.0, end=250.0, interval=60.0)

    assert [(60.0, 1.0), (120.0, 1.0)] == [(each.at, each.rate) for each in minutes]


def test_latencies_at_a_kill_are_apart() -> None:
    made = deliveries((110.0, 0.01), (130.0, 9.0), (140.0, 0.02), (158.0, 0.03))

    (minute,) = split(made, [125.0], begin=100.0, end=160.0, interval=60.0)

    assert Latency(10.0, 10.0) == minute.beside
    assert Latency(30.0, 9000.0) == minute.during


def test_record_that_was_written_at_a_kill_belongs_to_it() -> None:
    made = deliveries((200.0, 30.0))

    (minute,) = split(made, [120.0], begin=180.0, end=240.0, interval=60.0)

    assert (None, Latency(30_000.0, 30_000.0)) == (minute.beside, minute.during)


def test_planned_delays_count_as_records_and_not_as_latencies() -> None:
    made = deliveries((110.0, None), (111.0, 0.005))

    (minute,) = split(made, [], begin=100.0, end=160.0, interval=60.0)

    assert (2 / 60, Latency(5.0, 5.0)) == (minute.rate, minute.beside)


def test_percentiles_of_a_hundred_latencies() -> None:
    made = deliveries(*[(110.0, n / 1000) for n in range(101)])

    (minute,) = split(made, [], begin=100.0, end=160.0, interval=60.0)

    assert Latency(50.0, 99.0) == minute.beside
