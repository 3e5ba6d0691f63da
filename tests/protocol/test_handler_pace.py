"""When records are prefetched, before handlers are free."""

from sharecons.protocol.fetch.handler_pace import HandlerPace


def pace(*seconds: float) -> HandlerPace:
    found = HandlerPace()
    for each in seconds:
        found.on_call_ended(each)
    return found


def test_no_record_is_prefetched_before_a_handler_has_ended() -> None:
    assert not pace().fetches_ahead(30.0, 0.0)
    assert pace(0.1).fetches_ahead(30.0, 0.0)


def test_no_record_is_prefetched_while_the_lock_duration_is_unknown() -> None:
    assert not pace(0.1).fetches_ahead(0.0, 0.0)


def test_records_are_prefetched_if_handlers_take_less_than_a_quarter_of_the_lock() -> (
    None
):
    assert pace(7.4).fetches_ahead(30.0, 0.0)
    assert not pace(7.6).fetches_ahead(30.0, 0.0)


def test_one_long_call_among_many_changes_little() -> None:
    found = pace(*[0.1] * 100, 60.0)

    assert found.fetches_ahead(30.0, 0.0)


def test_prefetching_ends_after_handlers_are_busy_for_an_eighth_of_the_lock() -> None:
    found = pace(0.1)
    found.on_capacity(0, 100.0)
    found.on_capacity(0, 102.0)

    assert 103.75 == found.busy_until(30.0)
    assert found.fetches_ahead(30.0, 103.7)
    assert not found.fetches_ahead(30.0, 103.8)
    found.on_capacity(1, 103.8)
    assert 0.0 == found.busy_until(30.0)
    assert found.fetches_ahead(30.0, 103.8)
