"""Bars, pages and pictures; a single record is always visible."""

import re
from html.parser import HTMLParser

import pytest

from sharecons._record import TopicPartition
from sharecons.admin import (
    DeliveryState,
    Result,
    Results,
    ShareGroup,
    SharePartitionState,
    StateBatch,
)
from sharecons.errors import BrokerError
from sharecons.inspection import (
    GroupFacts,
    GroupInspection,
    OffsetStatus,
    Oldest,
    PartitionInspection,
    Source,
)
from sharecons.inspection.html import page
from sharecons.inspection.offset_bars import cells_of, colour_of, offset_bars_of
from sharecons.protocol.diagnosis.findings import findings_of
from sharecons.protocol.diagnosis.offset_states import OffsetRange, offset_ranges_of

AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = DeliveryState
NOW = 1_795_000_000.0
FACTS = GroupFacts(members=2, record_locks=2000, delivery_limit=5, lock_duration=30.0)


def inside(start, *batches, end):
    state = SharePartitionState(
        start_offset=start,
        state_epoch=0,
        batches=tuple(
            StateBatch(first_offset=a, last_offset=b, state=s, delivery_count=c)
            for a, b, s, c in batches
        ),
    )
    return PartitionInspection(
        start_offset=start,
        log_start_offset=0,
        end_offset=end,
        ranges=offset_ranges_of(state, 0, end),
        oldest=Oldest(offset=start or 0, timestamp=round((NOW - 90) * 1000)),
        members=("ann",),
    )


def group(*insides, topic="orders", errors=(), facts=FACTS):
    contents = {TopicPartition(topic, n): each for n, each in enumerate(insides)}
    outcomes = {key: Result(each) for key, each in contents.items()}
    outcomes |= {
        TopicPartition("lost", n): Result(error=e) for n, e in enumerate(errors)
    }
    return GroupInspection(
        group=ShareGroup(
            group_id="<billing> & co",
            state="Stable",
            group_epoch=1,
            assignment_epoch=1,
            assignor="simple",
            members=(),
        ),
        facts=facts,
        source=Source.COORDINATOR,
        at=NOW,
        partitions=Results(outcomes),
        findings={key: findings_of(e, facts, now=NOW) for key, e in contents.items()},
        since=dict.fromkeys(contents, NOW),
    )


STALLED = inside(1200, (1201, 3199, ACKNOWLEDGED, 1), end=45000)
FRESH = inside(None, end=10)
LONG = inside(7, end=1_000_000)


def test_one_record_among_thousands_is_visible_in_the_narrowest_bar():
    (strip,) = offset_bars_of(group(STALLED))

    for width in (1, 7, 40, 300):
        statuses = [cell and cell.status for cell in cells_of(strip, width)]
        assert OffsetStatus.OPEN is statuses[0]
        assert width == 1 or OffsetStatus.OPEN not in statuses[1:]


def test_all_bars_have_one_scale_for_the_longest_partition():
    strips = offset_bars_of(group(STALLED, LONG, FRESH))

    assert {1_000_000 - 7} == {strip.span for strip in strips}
    assert strips[0].limit == pytest.approx(2000 / strips[0].span)
    assert 1.0 == strips[1].segments[-1].right


@pytest.mark.parametrize("width", [40, 100, 750])
def test_one_settled_offset_of_750_fills_one_cell(width):
    contents = inside(0, (0, 0, ACKNOWLEDGED, 1), end=750)
    (strip,) = offset_bars_of(group(contents))
    statuses = [cell.status for cell in cells_of(strip, width)]

    assert 1 / 750 == pytest.approx(strip.segments[0].right)
    assert [OffsetStatus.ACKNOWLEDGED] + [OffsetStatus.ABOVE] * (width - 1) == statuses


@pytest.mark.parametrize(
    "contents", [STALLED, LONG, inside(0, end=1), inside(3, end=3)]
)
def test_segments_are_consecutive_and_within_the_bar(contents):
    (strip,) = offset_bars_of(group(contents))

    at = 0.0
    for piece in strip.segments:
        assert piece.left == pytest.approx(at)
        assert piece.left < piece.right <= 1.0
        at = piece.right


def test_colour_darkens_towards_the_delivery_limit():
    def brightness(count):
        colour = colour_of(
            OffsetRange(
                first_offset=0,
                last_offset=0,
                status=OffsetStatus.OPEN,
                delivery_count=count,
            ),
            5,
        )
        return sum(int(colour[at : at + 2], 16) for at in (1, 3, 5))

    shades = [brightness(count) for count in (1, 2, 3, 4)]
    assert sorted(set(shades), reverse=True) == shades


class Tags(HTMLParser):
    """Checks that opened elements are closed."""

    VOID = ("meta", "rect", "circle", "line", "br")

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_page_is_well_formed_without_external_files():
    error = BrokerError("no <leader>", code=5, name="LEADER_NOT_AVAILABLE")
    text = page(group(STALLED, LONG, FRESH, errors=[error]))
    tags = Tags()
    tags.feed(text)

    assert [] == tags.open
    assert not re.search(r"https?://|<script|<link|<img|url\((?!#)", text)
    assert "&lt;billing&gt; &amp; co" in text
    assert "<billing>" not in text
    assert "no &lt;leader&gt;" in text
    assert "the window is full behind one record" in text
    for name in ("orders-0", "orders-1", "orders-2", "lost-0"):
        assert f'<td class="name">{name}</td>' in text


def test_page_has_a_tooltip_for_each_range():
    text = page(group(STALLED))

    assert "offsets 1,200 to 1,200: available or locked" in text
    assert "offsets 1,201 to 3,199: acknowledged, delivery count 1" in text


@pytest.mark.slow("matplotlib draws a picture")
@pytest.mark.parametrize("count", [0, 1, 50])
def test_a_picture_is_drawn_of_any_number_of_partitions(tmp_path, count):
    pytest.importorskip("matplotlib")
    from sharecons.inspection.png import draw

    path = tmp_path / "inside.png"
    contents = [STALLED, LONG, FRESH, inside(0, (0, 3, ARCHIVED, 5), end=9)] * 13
    draw(group(*contents[:count], topic="a-topic-with-a-name-that-goes-on" * 3), path)

    header = path.read_bytes()[:24]
    width, height = (int.from_bytes(header[at : at + 4], "big") for at in (16, 20))
    assert header.startswith(b"\x89PNG")
    assert width > 1000
    assert height > 200 + 50 * count
