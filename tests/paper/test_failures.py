"""Training counts of the failure-mode studies: shape, scale, and what the data hold."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from longshift.data import get_benchmark
from longshift.data.digits import manifest
from longshift.paper.failures import PAPER_SIZES, absorbed_counts, mirrored_counts
from longshift.paper.recipe import Impossible

totals_of_two = st.lists(st.tuples(st.integers(9, 3000), st.integers(9, 3000)), min_size=2, max_size=12).map(
    lambda rows: {
        "a": {f"k{i}": x for i, (x, _) in enumerate(rows)},
        "b": {f"k{i}": y for i, (_, y) in enumerate(rows)},
    }
)


@given(totals_of_two)
def test_mirrored_tails_fit_the_data_and_run_against_each_other(totals: dict[str, dict[str, int]]) -> None:
    found = mirrored_counts(totals, ("a", "b"))
    for counts in (found.uneven, found.level):
        for domain, row in counts.items():
            for name, n in row.items():
                assert n >= 1
                assert n + found.validation + 1 <= totals[domain][name]
    head = found.uneven["a"][found.classes[0]]
    assert head == found.uneven["b"][found.classes[-1]]
    assert found.ratio == min(400, head)
    room = {d: {k: n - found.validation - 1 for k, n in row.items()} for d, row in totals.items()}
    assert head == max(min(room["a"][x], room["b"][y]) for x in room["a"] for y in room["b"] if x != y)
    # What each class would have without a cap falls; a class that holds less may only have less.
    ideal = [head * found.ratio ** (-i / (len(found.classes) - 1)) for i in range(len(found.classes))]
    assert all(found.uneven["a"][k] <= max(1, round(n)) for k, n in zip(found.classes, ideal, strict=True))
    assert found.uneven["a"][found.classes[-1]] <= max(1, round(head / found.ratio))


def test_mirrored_tails_of_pacs_are_the_papers() -> None:
    """Person leads in art painting and elephant in cartoon: 400:1, as in the paper, is possible."""
    pacs = get_benchmark("PACS")
    totals = {pacs.domains[letter]: pacs.totals[letter] for letter in "ACP"}
    found = mirrored_counts(totals, [pacs.domains[letter] for letter in "ACP"])
    assert (found.first, found.second, found.ratio) == ("art_painting", "cartoon", 400)
    assert (found.classes[0], found.classes[-1]) == ("person", "elephant")
    first, second = found.uneven["art_painting"], found.uneven["cartoon"]
    assert (first["person"], first["elephant"]) == (second["elephant"], second["person"]) == (428, 1)


def test_absorbed_sizes_are_the_papers_or_scaled_alike() -> None:
    large = {d: {str(k): 200 for k in range(7)} for d in ("a", "b", "c")}
    found = absorbed_counts(large, ("a", "b", "c"))
    assert (found.sizes, found.level_size) == (PAPER_SIZES, 10)
    digits = {domain: dict(row) for domain, row in manifest().counts().items()}
    small = absorbed_counts(digits, ("chalk", "ink", "neon"))
    room = min(digits[small.sources[0]].values()) - small.validation - 1
    assert small.sizes == (room, round(0.2 * room), round(0.04 * room))
    assert small.level_size == round(0.1 * room)
    assert all(small.uneven[d][k] + small.validation + 1 <= digits[d][k] for d in small.sources for k in digits[d])


def test_what_the_data_do_not_allow_is_impossible() -> None:
    with pytest.raises(Impossible, match="3"):
        absorbed_counts({"a": {"x": 9, "y": 9}, "b": {"x": 9, "y": 9}}, ("a", "b"))
    with pytest.raises(Impossible, match="a and b"):
        mirrored_counts({"a": {"x": 90, "y": 1}, "b": {"x": 1, "y": 90}}, ("a", "b"))
    with pytest.raises(Impossible, match="a or b"):
        mirrored_counts({"a": {"x": 3, "y": 3}, "b": {"x": 3, "y": 3}}, ("a", "b"))
