"""The pictures: what is drawn must be the counts."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer

from longshift.report.figures import SplitCounts, split_bars, split_panels
from longshift.settings import SplitRecipe, TotalHeavyTail, published
from tests.settings import made


def recipe(benchmark: str, setting: str, target: str) -> SplitRecipe:
    found = published(benchmark, setting, target)
    table = found.table()
    return SplitRecipe(
        benchmark, found.name, target, 0, found.classes, found.sources, table, table * 0, table, table[0],
        found.many, found.few,
    )  # fmt: skip


def bar_groups(axes: Axes) -> list[BarContainer]:
    return [container for container in axes.containers if isinstance(container, BarContainer)]


def test_bars_are_the_counts_with_classes_by_size() -> None:
    given = recipe("PACS", "Duality", "P")
    axes = split_panels([given]).figure.axes[0]
    order = np.argsort(-given.counts.sum(axis=0), kind="stable")
    bars = [bar for container in bar_groups(axes) for bar in container.patches]
    assert [bar.get_height() for bar in bars] == given.counts[:, order].ravel().tolist()
    assert [label.get_text() for label in axes.get_xticklabels()] == [given.classes[k] for k in order]
    assert len({to_hex(bar.get_facecolor()) for bar in bars}) == len(given.sources)
    written = {text.get_text() for text in axes.texts}
    assert {"many", "medium", "few"} <= written
    assert {str(n) for n in given.counts.ravel()} <= written
    assert axes.get_yscale() == "log"
    assert "16.18" in axes.get_title("left")


def test_a_domain_keeps_its_color_from_panel_to_panel() -> None:
    figure = split_panels([recipe("PACS", "Duality", target) for target in "ACPS"]).figure
    colors: dict[str, set[str]] = {}
    for axes, target in zip(figure.axes, "ACPS", strict=True):
        for container, source in zip(bar_groups(axes), published("PACS", "Duality", target).sources, strict=True):
            colors.setdefault(source, set()).add(to_hex(container.patches[0].get_facecolor()))
    assert {len(found) for found in colors.values()} == {1}
    assert len({next(iter(found)) for found in colors.values()}) == 4


def test_many_domains_become_a_map() -> None:
    setting = TotalHeavyTail(ratio=50).generate(made.even(50, 20, 90), "d3")
    table = setting.table()
    given = SplitRecipe(
        "big", setting.name, "d3", 0, setting.classes, setting.sources, table, table * 0, table, table[0],
        setting.many, setting.few,
    )  # fmt: skip
    image = split_panels([given]).figure.axes[0].images[0]
    order = np.argsort(-table.sum(axis=0), kind="stable")
    assert np.asarray(image.get_array()).tolist() == table[:, order].tolist()


def test_a_page_shows_the_count_of_every_bar_on_hover() -> None:
    counts = np.array([[10, 0], [30, 4]])
    drawing = split_bars(SplitCounts("t", ["a", "b"], ["photo", "art"], counts, ["many", "few"]))
    bars = [bar for container in bar_groups(drawing.figure.axes[0]) for bar in container.patches]
    assert [bar.get_height() for bar in bars] == [10, 0, 30, 4]
    assert [text for (text,) in drawing.tips.values()] == [
        "a, photo: 10 samples", "b, photo: 0 samples", "a, art: 30 samples", "b, art: 4 samples"
    ]  # fmt: skip
