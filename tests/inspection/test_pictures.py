"""Bars and pictures of a group; a single record is always visible."""

import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from rich.console import Console

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
from sharecons.group_state.offset_states import OffsetRange, offset_ranges_of
from sharecons.inspection import (
    GroupFacts,
    GroupInspection,
    OffsetStatus,
    OldestRecord,
    PartitionState,
    StateSource,
)
from sharecons.inspection.bar_svg import STYLE, bar_svg, describe
from sharecons.inspection.diagnosis.findings import findings_of
from sharecons.inspection.offset_bars import (
    cells_of,
    offset_bars_of,
    sign_of,
    style_of,
)
from sharecons.inspection.picture import GroupPicture
from sharecons.inspection.picture_files import html_page, svg_picture

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
    return PartitionState(
        start_offset=start,
        log_start_offset=0,
        end_offset=end,
        ranges=offset_ranges_of(state, 0, end),
        oldest=OldestRecord(offset=start or 0, timestamp=round((NOW - 90) * 1000)),
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
        source=StateSource.COORDINATOR,
        at=NOW,
        partitions=Results(outcomes),
        findings={key: findings_of(e, facts, now=NOW) for key, e in contents.items()},
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


def open_range(count):
    return OffsetRange(
        first_offset=0, last_offset=0, status=OffsetStatus.OPEN, delivery_count=count
    )


def test_last_delivery_has_a_colour_of_its_own():
    styles = [style_of(open_range(count), 5) for count in (None, 1, 3, 4, 5)]

    assert styles[0] == styles[1] == styles[2] != styles[3] == styles[4]


@pytest.mark.parametrize("unicode", [True, False])
def test_each_status_has_a_sign_of_its_own(unicode):
    signs = [
        sign_of(
            OffsetRange(
                first_offset=0, last_offset=0, status=status, delivery_count=None
            ),
            unicode,
        )
        for status in OffsetStatus
    ]

    assert len(set(signs)) == len(OffsetStatus)
    assert unicode or "".join(signs).isascii()


def draw(picture, width=120):
    """Return the lines of a picture, without colours."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(picture)
    return [line.rstrip() for line in console.file.getvalue().split("\n")]


def test_picture_has_the_bar_beside_the_numbers():
    lines = draw(GroupPicture(group=group(STALLED), max_bar_width=40))

    row = next(line for line in lines if line.startswith("orders"))
    assert ["1200", "45000", "1999", "0", "1", "41800"] == row.split()[2:8]
    assert row.endswith(" ◆█┊" + 37 * "·")


def test_end_of_the_window_is_marked_in_the_bar():
    lines = draw(GroupPicture(group=group(inside(0, end=4000)), max_bar_width=40))

    assert any(line.endswith(" " + 20 * "·" + "┊" + 19 * "·") for line in lines)
    assert any("┊ the window is full here" in line for line in lines)


def test_topic_is_above_its_partitions_if_the_bar_does_not_fit_beside_it():
    lines = draw(GroupPicture(group=group(STALLED, LONG)), width=90)

    assert 1 == lines.count("topic orders")
    assert any(line.startswith("   1") and "·" * 12 in line for line in lines)


@pytest.mark.parametrize("width", [20, 40, 60])
def test_bar_is_below_the_numbers_on_a_narrow_terminal(width):
    lines = draw(GroupPicture(group=group(STALLED)), width)

    assert all(len(line) <= width for line in lines)
    assert "orders-0" in lines
    assert any(line.startswith("◆") and len(line) == width for line in lines)
    numbers = " ".join(lines).split()
    assert {"1200", "45000", "1999", "41800"} <= set(numbers)


def test_picture_without_unicode_has_plain_signs_and_escapes():
    text = "\n".join(
        draw(GroupPicture(group=group(STALLED, topic="\u65e5"), encoding="ascii"))
    )

    assert text.isascii()
    assert "\\u65e5" in text
    assert "o==" in text


def test_screen_counts_partitions_that_do_not_fit():
    lines = draw(GroupPicture(group=group(*[STALLED] * 50), height=24), width=100)

    rows = [line for line in lines if "  1200  45000" in line]
    assert f"and {50 - len(rows)} more partitions" in lines
    assert "orders-0 and 49 more partitions: STALLED: the window is full" in "\n".join(
        lines[:24]
    )


@pytest.mark.parametrize("count", [0, 1, 50])
@pytest.mark.parametrize("offsets", [False, True])
def test_picture_is_drawn_of_any_number_of_partitions(count, offsets):
    contents = [STALLED, LONG, FRESH, inside(0, (0, 3, ARCHIVED, 5), end=9)] * 13
    long = group(*contents[:count], topic="a-topic-with-a-name-that-goes-on" * 3)

    for width in (20, 300):
        lines = draw(GroupPicture(group=long, offsets=offsets), width)
        assert lines[0].startswith("group")


class Tags(HTMLParser):
    """Checks that opened elements are closed."""

    VOID = ("meta", "rect", "circle", "line", "br")

    def __init__(self):
        super().__init__()
        self.open = []
        self.texts = []

    def handle_data(self, data):
        self.texts.append(data)

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize("of", [html_page, svg_picture])
def test_file_is_well_formed_without_external_files(of):
    error = BrokerError("no <leader>", code=5, name="LEADER_NOT_AVAILABLE")
    text = of(group(STALLED, LONG, FRESH, errors=[error]))
    tags = Tags()
    tags.feed(text)
    shown = " ".join("".join(tags.texts).replace("\xa0", " ").split())

    assert [] == tags.open
    addresses = set(re.findall(r"https?://[^\s\"]*", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<script|<link|<img|@font-face|url\((?!#)", text)
    assert "group <billing> & co: Stable" in shown
    assert "lost-0: not readable: no <leader>" in shown
    assert "the window is full behind one record" in shown
    assert "2026-11-18 11:06:40 UTC" in shown


def test_svg_is_xml():
    root = ElementTree.fromstring(svg_picture(group(STALLED, LONG, topic="<&>\x1b")))

    assert "{http://www.w3.org/2000/svg}svg" == root.tag
    title = root.find("{http://www.w3.org/2000/svg}title")
    assert "Share group <billing> & co" == title.text


LIGHT, DARK = (
    dict(re.findall(r"--([a-z]+): (#[0-9a-f]+);", each))
    for each in STYLE.split("@media")
)


def test_each_colour_is_light_and_dark():
    used = set(re.findall(r"var\(--([a-z]+)\)", STYLE))

    assert used <= LIGHT.keys()
    assert LIGHT.keys() == DARK.keys()


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_have_enough_contrast(theme):
    for name in ("ink", "quiet", "acknowledged", "archiving", "open", "last"):
        assert contrast(theme[name], theme["paper"]) >= 4.5, name
    for name in ("archived", "above"):
        assert contrast(theme[name], theme["track"]) >= 3, name


def test_bar_is_described_in_words():
    (bar,) = offset_bars_of(group(inside(7, (8, 9, AVAILABLE, 4), end=20)))

    assert describe(bar) == (
        "orders-0, offsets 7 to 19: 3 available or locked, 10 above, "
        "2 delivered 4 times"
    )


def test_bar_of_thousands_of_ranges_is_small():
    batches = [(n, n, ACKNOWLEDGED, 1) for n in range(1, 2000, 2)]
    (bar,) = offset_bars_of(group(inside(0, *batches, end=2000)))

    assert len(bar_svg(bar, 5)) < 1500


def test_last_delivery_differs_from_others():
    (bar,) = offset_bars_of(
        group(inside(0, (0, 0, AVAILABLE, 4), (1, 1, AVAILABLE, 3), end=2))
    )

    assert "bar-last" in bar_svg(bar, 5)
    assert "bar-open" in bar_svg(bar, 5)
    assert "bar-last" not in bar_svg(bar, None)


def test_full_window_ends_within_a_cell_and_is_marked():
    (bar,) = offset_bars_of(
        group(inside(0, (0, 0, AVAILABLE, 1), (1, 99, ACKNOWLEDGED, 1), end=300))
    )
    bar = replace(bar, limit=100 / 300)

    assert 'class="bar-end"' in bar_svg(bar, 5)


def contrast(one, other):
    """Return the contrast of two colours as defined by WCAG 2."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour):
    digits = (
        colour[1:] if len(colour) == 7 else "".join(2 * each for each in colour[1:])
    )
    parts = (part / 255 for part in bytes.fromhex(digits))
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
