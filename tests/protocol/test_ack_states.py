"""Marks against a list of them, whatever is said in whichever order."""

from hypothesis import given
from hypothesis import strategies as st

from sharecons.protocol.acknowledge.ack_states import KIND, SENT, AckStates
from sharecons.record import ACCEPT, REJECT, RELEASE, AcknowledgeType

COUNT = 12
TERMINAL = st.sampled_from([ACCEPT, RELEASE, REJECT])


def say(marks: AckStates, index: int, kind: AcknowledgeType) -> None:
    """As a lease does."""
    if not marks.extend_run(index, kind) and marks[index] < SENT:
        marks.set_pending(index, kind)


@given(st.data())
def test_marks_are_what_was_said_last_and_not_sent(data: st.DataObject) -> None:
    marks, model = AckStates(COUNT), [0] * COUNT
    for _ in range(data.draw(st.integers(0, 12))):
        kind = data.draw(TERMINAL)
        match data.draw(st.sampled_from(["in turn", "one", "open", "send", "settle"])):
            case "in turn":
                start = data.draw(st.integers(0, COUNT))
                stop = data.draw(st.integers(start, COUNT))
                for index in range(start, stop):
                    say(marks, index, kind)
                    model[index] = kind if model[index] < SENT else model[index]
            case "one":
                index = data.draw(st.integers(0, COUNT - 1))
                say(marks, index, kind)
                model[index] = kind if model[index] < SENT else model[index]
            case "open":
                start = data.draw(st.integers(0, COUNT))
                part = slice(start, data.draw(st.integers(start, COUNT)))
                changed = 0 in model[part]
                assert changed == marks.set_pending_if_open(part, kind)
                model[part] = [mark or kind for mark in model[part]]
            case "send":
                assert [i for span in marks.pending_runs() for i in range(*span)] == [
                    i for i in range(COUNT) if 0 < model[i] < SENT
                ]
                marks.set_sent()
                model = [m | SENT if 0 < m < SENT else m for m in model]
            case "settle":
                marks.settle(0, COUNT)
                model = [m & KIND | 2 * SENT if m & SENT else m for m in model]

    assert model == [marks[index] for index in range(COUNT)]
    assert marks.has_open == (0 in model)
    assert marks.all_settled == all(mark >= 2 * SENT for mark in model)


def test_runs_are_of_one_kind_each() -> None:
    marks = AckStates(6)
    for index, kind in enumerate([ACCEPT, ACCEPT, REJECT, REJECT, REJECT, ACCEPT]):
        say(marks, index, kind)

    assert [(0, 2), (2, 5), (5, 6)] == marks.pending_runs()


def test_a_run_goes_on_after_it_was_sent() -> None:
    marks = AckStates(4)
    for index in range(2):
        say(marks, index, ACCEPT)
    marks.set_sent()
    for index in (2, 3):
        say(marks, index, ACCEPT)

    assert [(2, 4)] == marks.pending_runs()
    assert [SENT | ACCEPT] * 2 + [ACCEPT] * 2 == [marks[i] for i in range(4)]


def test_what_was_said_beyond_a_run_is_not_overwritten_by_it() -> None:
    marks = AckStates(4)
    say(marks, 1, REJECT)
    say(marks, 0, ACCEPT)
    marks.set_sent()
    say(marks, 1, ACCEPT)

    assert SENT | REJECT == marks[1]
