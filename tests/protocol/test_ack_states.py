"""Acknowledgement states, compared with a plain list."""

from hypothesis import given
from hypothesis import strategies as st

from sharecons.protocol.acknowledge.ack_states import KIND, SENT, AckStates
from sharecons.protocol.acknowledge.runs import Run, partition_runs
from sharecons.record import ACCEPT, REJECT, RELEASE, AcknowledgeType

COUNT = 12
TERMINAL = st.sampled_from([ACCEPT, RELEASE, REJECT])


def acknowledge(states: AckStates, index: int, kind: AcknowledgeType) -> None:
    """Acknowledge one record, as a lease does."""
    if not states.extend_run(index, kind) and states[index] < SENT:
        states.set_pending(index, kind)


@given(st.data())
def test_states_after_any_calls_equal_those_of_a_list(data: st.DataObject) -> None:
    states, model = AckStates(COUNT), [0] * COUNT
    for _ in range(data.draw(st.integers(0, 12))):
        kind = data.draw(TERMINAL)
        match data.draw(st.sampled_from(["in turn", "one", "open", "send", "settle"])):
            case "in turn":
                start = data.draw(st.integers(0, COUNT))
                stop = data.draw(st.integers(start, COUNT))
                for index in range(start, stop):
                    acknowledge(states, index, kind)
                    model[index] = kind if model[index] < SENT else model[index]
            case "one":
                index = data.draw(st.integers(0, COUNT - 1))
                acknowledge(states, index, kind)
                model[index] = kind if model[index] < SENT else model[index]
            case "open":
                start = data.draw(st.integers(0, COUNT))
                part = slice(start, data.draw(st.integers(start, COUNT)))
                changed = 0 in model[part]
                assert changed == states.set_pending_if_open(part, kind)
                model[part] = [state or kind for state in model[part]]
            case "send":
                assert [i for span in states.pending_runs() for i in range(*span)] == [
                    i for i in range(COUNT) if 0 < model[i] < SENT
                ]
                states.set_sent()
                model = [m | SENT if 0 < m < SENT else m for m in model]
            case "settle":
                states.settle(0, COUNT)
                model = [m & KIND | 2 * SENT if m & SENT else m for m in model]

    assert model == [states[index] for index in range(COUNT)]
    assert states.has_open == (0 in model)
    assert states.all_settled == all(state >= 2 * SENT for state in model)


def test_each_pending_run_has_one_acknowledge_type() -> None:
    states = AckStates(6)
    for index, kind in enumerate([ACCEPT, ACCEPT, REJECT, REJECT, REJECT, ACCEPT]):
        acknowledge(states, index, kind)

    assert [(0, 2), (2, 5), (5, 6)] == states.pending_runs()


def test_run_that_reaches_an_acknowledged_record_does_not_overwrite_it() -> None:
    states = AckStates(4)
    acknowledge(states, 1, REJECT)
    acknowledge(states, 0, ACCEPT)
    states.set_sent()
    acknowledge(states, 1, ACCEPT)

    assert SENT | REJECT == states[1]


def test_runs_are_divided_at_the_ends_of_ranges():
    runs = [Run(0, 5, ACCEPT), Run(8, 9, RELEASE)]

    inside, outside = partition_runs(runs, [(4, 8), (2, 2), (20, 30)])

    assert [(2, 2, ACCEPT), (4, 5, ACCEPT), (8, 8, RELEASE)] == inside
    assert [(0, 1, ACCEPT), (3, 3, ACCEPT), (9, 9, RELEASE)] == outside
