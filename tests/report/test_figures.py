"""Figures: what is drawn where, how it becomes a part of a page, and that names stay text."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from PIL import Image

from longshift.report.drawing import PALETTE, Drawing, short
from longshift.report.figures import (
    DARKEST,
    Line,
    NewSite,
    SiteDots,
    SplitCounts,
    class_bars,
    confusion_map,
    line_chart,
    rank_diagram,
    site_dots,
    split_bars,
)

WILD = "<script>\"&'</script>"


def parse(drawing: Drawing) -> ElementTree.Element:
    return ElementTree.fromstring(str(drawing.svg()))


def tips(drawing: Drawing) -> dict[str, ElementTree.Element]:
    """Hover text -> the mark it belongs to."""
    found = {}
    for mark in parse(drawing).iter():
        title = mark.find("title")
        if title is not None and title.text:
            found[title.text] = mark
    return found


def artists(drawing: Drawing) -> Mapping[str, Any]:
    """Hover text -> the artist it belongs to, for texts of a whole artist."""
    texts = {name: found[0] for name, found in drawing.tips.items() if len(found) == 1}
    drawn = drawing.figure.findobj(lambda artist: artist.get_gid() in texts)
    return {texts[str(artist.get_gid())]: artist for artist in drawn}


def style(mark: ElementTree.Element) -> dict[str, str]:
    return dict(part.split(":", 1) for part in mark.attrib["style"].split(";"))


def words(drawing: Drawing) -> str:
    return " ".join(parse(drawing).itertext())


def test_class_bars_are_as_long_as_the_accuracy() -> None:
    drawing = class_bars(["a", "b", "c"], {"NDCL": [0.5, 1.0, None], "ERM": [0.25, 0.75, 0.5]}, counts=[1, 9, 5])
    found = artists(drawing)
    half, full = found["a: NDCL 50.0 %"], found["b: NDCL 100.0 %"]
    assert (half.get_width(), full.get_width()) == (50, 100)
    assert full.get_y() < half.get_y()  # the larger class comes first, on an axis that points down
    assert drawing.figure.axes[0].yaxis_inverted()
    assert found["b: ERM 75.0 %"].get_xdata() == [75]
    assert "no sample" in words(drawing)


def test_confusions_are_shares_of_the_true_class() -> None:
    drawing = confusion_map(["cat", "dog", "owl"], [[8, 2, 0], [0, 5, 5], [0, 0, 0]])
    found = tips(drawing)
    mistake, correct = (
        found["cat classified as dog: 2 of 10 (20.0 %)"],
        found["cat classified as cat: 8 of 10 (80.0 %)"],
    )
    assert float(style(mistake)["fill-opacity"]) == pytest.approx(DARKEST * math.sqrt(0.2), abs=0.005)
    assert (style(correct)["fill"], style(mistake)["fill"]) == ("var(--c0)", "var(--c1)")
    (cells,) = drawing.figure.axes[0].findobj(PolyCollection)
    centers = [np.asarray(path.vertices)[:4].mean(axis=0).tolist() for path in cells.get_paths()]
    assert centers == [[0.5, 0.5], [1.5, 0.5], [1.5, 1.5], [2.5, 1.5]]  # empty cells are not drawn


def test_curves_go_through_their_points_and_bands_stay_inside() -> None:
    lines = [Line("A", [0, 10], [0.3, 0.9], [0.2, 0.2]), Line("B", [0, 10], [0.4, 0.5])]
    drawing = line_chart(lines, "step", "accuracy")
    assert {"A: step 0, 30 %", "A: step 10, 90 %", "B: step 10, 50 %"} <= set(tips(drawing))
    axes = drawing.figure.axes[0]
    assert np.asarray(axes.lines[0].get_ydata()).tolist() == [30, 90]
    (band,) = axes.collections
    edges = np.concatenate([np.asarray(path.vertices)[:, 1] for path in band.get_paths()])
    low, high = axes.get_ylim()
    assert (edges.min(), edges.max()) == (pytest.approx(10), pytest.approx(110))
    assert low < 10
    assert high > 110
    assert band.get_clip_on()
    assert "nothing" in words(line_chart([], "x", "y"))


def test_curves_differ_in_more_than_color() -> None:
    drawing = line_chart([Line(str(i), [0, 1], [0.1 * i, 0.5]) for i in range(8)], "x", "y")
    styles = [style(mark) for mark in parse(drawing).iter("path") if "stroke-width:2" in mark.attrib.get("style", "")]
    assert len({found["stroke"] for found in styles}) == len(PALETTE)
    assert len({found.get("stroke-dasharray") for found in styles}) == 8


def test_rank_diagram_puts_ranks_on_the_axis() -> None:
    ranks = {"A": 1.0, "B": 2.5, "C": 2.5, "D": 4.0}
    drawing = rank_diagram(ranks, 1.6, [("A", "B", "C"), ("B", "C", "D")], 6, "Ranks", marked="A")
    found = artists(drawing)
    x = {name: float(found[f"{name}: average rank {rank:.2f}"].get_xdata()[0]) for name, rank in ranks.items()}
    assert x["B"] == pytest.approx((x["A"] + x["D"]) / 2)
    left, right = found["no significant difference: A, B, C"].get_xdata()
    assert left < x["A"] < x["C"] < right < x["D"]
    assert "1.60" in words(drawing)
    assert "Ranks" in words(drawing)
    bold = [mark.text for mark in parse(drawing).iter("text") if style(mark).get("font-weight", "400") != "400"]
    assert bold == ["A 1.00"]


def test_site_dots_name_both_accuracies_and_the_range() -> None:
    found = tips(site_dots([SiteDots("a", 0.5, 0.75), SiteDots("b", 0.25)], NewSite("c", 0.2, 0.9, 0.7)))
    assert set(found) == {
        "a, while held out: 50.0 %", "a, while known: 75.0 %", "b, while held out: 25.0 %", "c: 20 to 90 %",
        "c, expected: 70 %",
    }  # fmt: skip


@pytest.mark.parametrize(
    "drawing",
    [
        class_bars([WILD, "b"], {WILD: [0.1, 0.2]}, [WILD, "few"], [1, 2]),
        confusion_map([WILD, "b"], [[1, 1], [0, 1]]),
        line_chart([Line(WILD, [0, 1], [0, 1])], WILD, WILD),
        rank_diagram({WILD: 1.0, "b": 2.0}, 0.5, [], 3),
        site_dots([SiteDots(WILD, 0.5, 0.7)], NewSite(WILD, 0.2, 0.9)),
        split_bars(SplitCounts(WILD, [WILD], [WILD], np.array([[3]]), ["few"])),
    ],
    ids=lambda drawing: drawing.label[:12],
)
def test_names_stay_text(drawing: Drawing) -> None:
    svg = drawing.svg()
    assert "<script" not in svg
    root = ElementTree.fromstring(str(svg))
    assert any(short(WILD, 14)[:-1] in (text or "") for text in root.itertext())


def test_a_drawing_follows_the_page_it_stands_on() -> None:
    svg = str(line_chart([Line("A", [0, 1], [0.1, 0.5], [0.1, 0.1])], "step", "accuracy").svg())
    root = ElementTree.fromstring(svg)
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"]
    assert "var(--c0)" in svg
    assert "font-family" not in svg
    for part in ("#0072", "<style", "<metadata", "DejaVu"):
        assert part not in svg
    assert len(svg) < 8000


def test_a_drawing_becomes_the_same_file_again(tmp_path: Path) -> None:
    drawing = rank_diagram({"A": 1.0, "B": 2.0}, 0.5, [], 3)
    for name in ("a.svg", "b.svg", "a.png"):
        drawing.save(tmp_path / name, dpi=50)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert b"var(--" not in (tmp_path / "a.svg").read_bytes()
    with Image.open(tmp_path / "a.png") as image:
        assert image.getpixel((0, 0)) == (255, 255, 255, 255)


def test_names_are_text_and_never_formulas() -> None:
    svg = confusion_map(["$5_$10", "_b"], [[3, 1], [0, 2]]).svg()
    assert ">$5_$10<" in svg


@pytest.mark.filterwarnings("error")
def test_names_in_any_script_are_drawn_without_warnings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    names = ["\u5317\u4eac", "\u0926\u093f\u0932\u094d\u0932\u0940", "\uc11c\uc6b8", "\u041c\u0438\u0440", "\U0001f3e5"]
    drawing = class_bars(names, {"\u65b9\u6cd5": [0.5] * len(names)})
    assert all(name in words(drawing) for name in names)
    for suffix in ("png", "svg"):
        drawing.save(tmp_path / f"drawing.{suffix}")
    assert caplog.records == []


def test_settings_of_the_current_folder_are_not_used(tmp_path: Path) -> None:
    """A stranger's folder may hold a `matplotlibrc` that starts LaTeX and changes every figure."""
    started = tmp_path / "started"
    for name in ("latex", "dvipng", "dvisvgm"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\ntouch {started}\n", encoding="utf-8")
        program.chmod(0o755)
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nfont.size: 40\naxes.grid: True\n", encoding="utf-8")
    code = (
        "from longshift.report import Line, line_chart\n"
        "drawing = line_chart([Line('A', [0, 1], [0.1, 0.5])], 'step', 'accuracy')\n"
        "print(drawing.svg()); drawing.save('out.png')"
    )
    path = os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PATH": path}, text=True, check=True,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert done.stdout.strip() == str(line_chart([Line("A", [0, 1], [0.1, 0.5])], "step", "accuracy").svg())
    assert not started.exists()
