"""Without a target every domain is a source: the final model for a site that is not in the data."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from longshift.data.manifest import Manifest, Row
from longshift.settings import make_split, setting_for
from longshift.settings.setting import NO_TARGET


def dataset(counts: list[list[int]]) -> Manifest:
    rows = [
        Row(f"site{d}", f"class{k}", f"{d}/{k}/{i}")
        for d, row in enumerate(counts)
        for k, n in enumerate(row)
        for i in range(n)
    ]
    return Manifest.from_rows("made", None, rows)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.integers(0, 30), min_size=3, max_size=3), min_size=2, max_size=4), st.integers(0, 9))
def test_training_takes_all_that_validation_leaves(counts: list[list[int]], seed: int) -> None:
    manifest = dataset([*counts, [3, 4, 5], [1, 0, 2]])
    split = make_split(manifest, setting_for(manifest, "Natural", NO_TARGET), seed, shrink=True)
    assert split.sources == manifest.domain_names
    assert len(split.target_indices) == len(split.test) == 0
    assert sorted([*split.train, *split.validation]) == list(range(len(manifest)))
    present = manifest.count_table() > 0
    assert np.array_equal(split.counts > 0, present)  # a class that is there is trained on


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3), min_size=2, max_size=4), st.integers(1, 9))
def test_small_classes_give_a_third_to_validation(counts: list[list[int]], validation: int) -> None:
    manifest = dataset([*counts, [3, 4, 5], [1, 0, 2]])
    table = manifest.count_table()
    final = setting_for(manifest, "Natural", NO_TARGET, validation=validation, third=True)
    split = make_split(manifest, final, shrink=True, third=True)
    held = table - split.counts
    expected = np.where(table > 1, np.minimum(validation, np.maximum(table // 3, 1)), 0)
    assert np.array_equal(held, expected)
    assert len(split.validation) == expected.sum()
    target = manifest.domain_names[0]
    fold = make_split(
        manifest, setting_for(manifest, "Natural", target, validation=validation, third=True), shrink=True, third=True
    )
    assert (fold.counts[table[1:] > 0] > 0).all()
    assert len(fold.validation) == expected[1:].sum()
    assert len(fold.train) + len(fold.validation) + len(fold.test) == table[1:].sum()


def test_one_domain_is_enough() -> None:
    manifest = dataset([[9, 3, 20]])
    split = make_split(manifest, setting_for(manifest, "Natural", NO_TARGET), shrink=True)
    assert split.sources == ("site0",)
    assert len(split.train) + len(split.validation) == 32
