"""Figures: what is drawn where, and that names stay text."""

from __future__ import annotations

import math
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st
from markupsafe import Markup

from longshift.report.figures import Line, class_bars, confusion_map, line_chart, rank_diagram, split_bars
from longshift.report.svg import PALETTE, Svg, short, ticks

WILD = "<script>\"&'</script>"


def parse(svg: Markup) -> ElementTree.Element:
    return ElementTree.fromstring(str(svg))


def tips(svg: Markup) -> dict[str, ElementTree.Element]:
    """Hover text -> the mark it belongs to."""
    found = {}
    for mark in parse(svg).iter():
        title = mark.find("title")
        if title is not None and title.text:
            found[title.text] = mark
    return found


def number(mark: ElementTree.Element, name: str) -> float:
    return float(mark.attrib[name])


def test_class_bars_are_as_long_as_the_accuracy() -> None:
    svg = class_bars(["a", "b", "c"], {"NDCL": [0.5, 1.0, None], "ERM": [0.25, 0.75, 0.5]}, counts=[1, 9, 5])
    found = tips(svg)
    half, full = found["a: NDCL 50.0 %"], found["b: NDCL 100.0 %"]
    assert number(full, "width") == pytest.approx(2 * number(half, "width"), rel=1e-3)
    assert number(full, "y") < number(half, "y")  # the larger class stands first
    left, width = number(full, "x"), number(full, "width")
    mark = found["b: ERM 75.0 %"].attrib["d"]
    assert float(mark[1:].split()[0]) + 4 == pytest.approx(left + 0.75 * width, abs=0.2)  # the circle begins 4 left
    assert "no sample" in "".join(parse(svg).itertext())


def test_class_bars_name_the_groups() -> None:
    text = "".join(parse(class_bars(["a", "b"], {"M": [0.1, 0.2]}, ["many", "few"], [9, 1])).itertext())
    assert text.index("classes with many samples") < text.index("classes with few samples")


def test_confusions_are_shares_of_the_true_class() -> None:
    found = tips(confusion_map(["cat", "dog", "owl"], [[8, 2, 0], [0, 5, 5], [0, 0, 0]]))
    wrong, right = found["cat taken for dog: 2 of 10 (20.0 %)"], found["cat taken for cat: 8 of 10 (80.0 %)"]
    assert number(wrong, "fill-opacity") == pytest.approx(math.sqrt(0.2), abs=0.005)
    assert wrong.attrib["fill"] != right.attrib["fill"]
    assert number(wrong, "x") > number(right, "x")
    assert number(wrong, "y") == number(right, "y")
    assert sum("taken for" in tip for tip in found) == 4  # empty cells are not drawn


def test_curves_go_through_their_points() -> None:
    svg = line_chart([Line("A", [0, 10], [0.0, 1.0], [0.1, 0.1])], "step", "accuracy", y_range=(0.0, 1.0))
    found = tips(svg)
    low, high = found["A: step 0, 0 %"], found["A: step 10, 100 %"]
    assert number(low, "cx") < number(high, "cx")
    assert number(low, "cy") > number(high, "cy")
    (line,) = parse(svg).iter("polyline")
    points = [tuple(map(float, p.split(","))) for p in line.attrib["points"].split()]
    assert points == [(number(m, "cx"), number(m, "cy")) for m in (low, high)]
    assert len(list(parse(svg).iter("polygon"))) == 1
    assert "nothing to draw" in "".join(parse(line_chart([], "x", "y")).itertext())


def test_curves_differ_in_more_than_colour() -> None:
    svg = line_chart([Line(str(i), [0, 1], [0.1 * i, 0.5]) for i in range(8)], "x", "y")
    lines = list(parse(svg).iter("polyline"))
    assert len({line.attrib["stroke-dasharray"] for line in lines}) == 8
    assert len({line.attrib["stroke"] for line in lines}) == len(PALETTE)
    ends = sorted(
        float(t.attrib["y"])
        for t in parse(svg).iter("text")
        if t.text in set("01234567") and float(t.attrib["x"]) > 500
    )
    assert all(b - a > 12.5 for a, b in pairwise(ends))  # names at the ends do not overlap


def test_rank_diagram_puts_ranks_on_the_axis() -> None:
    ranks = {"A": 1.0, "B": 2.5, "C": 2.5, "D": 4.0}
    svg = rank_diagram(ranks, 1.6, [("A", "B", "C"), ("B", "C", "D")], 6)
    found = tips(svg)
    x = {name: number(found[f"{name}: average rank {rank:.2f}"], "cx") for name, rank in ranks.items()}
    assert x["B"] == pytest.approx((x["A"] + x["D"]) / 2, abs=0.01)
    bar = found["no significant difference: A, B, C"]
    assert number(bar, "x1") < x["A"] < x["C"] < number(bar, "x2") < x["D"]
    assert "critical difference 1.60" in "".join(parse(svg).itertext())


def test_split_bars_are_as_high_as_the_counts() -> None:
    svg = split_bars(["a", "b"], ["photo", "art"], [[10, 0], [30, 4]], ["many", "few"])
    rects = [m for m in parse(svg).iter("rect") if (t := m.find("title")) is not None and "a, many" in (t.text or "")]
    heights = sorted(number(m, "height") for m in rects if m.attrib["fill"] != "transparent")
    assert heights == pytest.approx([150 * 10 / 40, 150 * 30 / 40], abs=0.01)
    assert "b, few: 4 samples (photo 0, art 4)" in tips(svg)


@pytest.mark.parametrize(
    "svg",
    [
        class_bars([WILD, "b"], {WILD: [0.1, 0.2]}, [WILD, "few"], [1, 2]),
        confusion_map([WILD, "b"], [[1, 1], [0, 1]]),
        line_chart([Line(WILD, [0, 1], [0, 1])], WILD, WILD),
        rank_diagram({WILD: 1.0, "b": 2.0}, 0.5, [], 3),
        split_bars([WILD], [WILD], [[3]], [WILD]),
    ],
)
def test_names_stay_text(svg: Markup) -> None:
    assert "<script" not in svg
    root = parse(svg)
    assert not list(root.iter("script"))
    assert any(short(WILD) in (text or "") or WILD in (text or "") for text in root.itertext())


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(3, 10))
def test_ticks_are_inside_even_and_few(low: float, span: float, most: int) -> None:
    found = ticks(low, low + span, most)
    assert len(found) <= most + 1
    slack = 1e-6 * max(1.0, abs(low), span)
    assert all(low - slack <= t <= low + span + slack for t in found)
    steps = [b - a for a, b in pairwise(found)]
    assert all(s == pytest.approx(steps[0], rel=1e-3, abs=1e-9) for s in steps)


def test_ticks_of_common_axes() -> None:
    assert ticks(0, 100, 4) == [0, 25, 50, 75, 100]
    assert ticks(0, 1, 5) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert ticks(0, 300, 6) == [0, 50, 100, 150, 200, 250, 300]


def test_attributes_are_quoted() -> None:
    svg = Svg(10, 10, 'say "hi" & go')
    svg.rect(0, 0, -3, 1, 'red" onload="x', tip="a < b")
    root = parse(svg.render())
    assert root.attrib["aria-label"] == 'say "hi" & go'
    (rect,) = root
    assert rect.attrib == {"x": "0", "y": "0", "width": "0", "height": "1", "fill": 'red" onload="x'}


def test_long_names_stay_inside_the_rank_diagram() -> None:
    svg = parse(rank_diagram({"B" * 26: 1.0, "c" * 90: 2.0, "d": 3.0}, 1.0, [], 4))
    width = float(svg.attrib["viewBox"].split()[2])
    shown = [mark for mark in svg.iter("text") if mark.attrib["text-anchor"] != "middle"]
    for mark in shown:
        length = 6.4 * len(mark.text or "")
        start = number(mark, "x") - (length if mark.attrib["text-anchor"] == "end" else 0)
        assert start >= 0
        assert start + length <= width
    assert f"{'B' * 26} 1.00" in [mark.text for mark in shown]
