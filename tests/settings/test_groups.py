"""Groups in splits, and validation on natural data: a share of the groups of each cell (source and class)."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from longshift.array_types import IntArray
from longshift.data import load_dataset
from longshift.data.manifest import Manifest, Row
from longshift.errors import ConfigError
from longshift.settings import (
    GENERATORS,
    NO_TARGET,
    Split,
    load_split,
    make_split,
    samples_kept_together,
    save_split,
    setting_for,
)
from longshift.settings.split import PARTS
from tests.data.trees import ham10000, make_tree
from tests.settings import made

# Each sample: domain 0 (the target) to 3, class 0 or 1, group 0 to 9 (0: on its own).
SAMPLES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 9)), min_size=20, max_size=80)


def grouped(samples: list[tuple[int, int, int]]) -> Manifest:
    """A dataset of these samples, and some of every class in every domain."""
    rows = [Row(f"d{d}", f"c{k}", f"{d}/{k}/{i}", group=f"g{g}" * (g > 0)) for i, (d, k, g) in enumerate(samples)]
    rows += [Row(f"d{d}", f"c{k}", f"{d}/{k}/more{i}") for d in range(4) for k in range(2) for i in range(3)]
    return Manifest.from_rows("made", None, rows)


def parts_of_groups(data: Manifest, split: Split) -> Mapping[str, set[str]]:
    """The parts that each named group is in."""
    found: dict[str, set[str]] = defaultdict(set)
    for part in PARTS:
        for i in split.part(part):
            if data.groups and data.groups[i]:
                found[data.groups[i]].add(part)
    return found


@settings(deadline=None, max_examples=60)
@given(samples=SAMPLES, seed=st.integers(0, 3), name=st.sampled_from(sorted(GENERATORS)))
def test_no_group_is_on_two_sides(
    samples: list[tuple[int, int, int]], seed: int, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = grouped(samples)
    groups = samples_kept_together(data)
    split = make_split(data, setting_for(data, name, "d0"), seed, shrink=True, groups=groups)
    assert sorted(np.concatenate([split.part(part) for part in PARTS])) == list(range(len(data)))
    for found in parts_of_groups(data, split).values():
        # A group with a sample of the target is neither trained nor validated on.
        assert len(found) == 1 or found == {"target", "test"}
    for part, table in (("train", split.counts), ("validation", split.held)):
        rows = split.part(part)
        plain = [[int(((data.domains[rows] == d) & (data.labels[rows] == k)).sum()) for k in (0, 1)] for d in (1, 2, 3)]
        assert table.tolist() == plain
    path = tmp_path_factory.mktemp("split") / "split.json"
    save_split(split, path)
    again = load_split(path, data)
    assert [again.part(part).tolist() for part in PARTS] == [split.part(part).tolist() for part in PARTS]
    assert again.share == split.share


def plain_natural_validation(sizes: list[int]) -> int:
    """How many groups of a cell validate, by the rule in words."""
    return 0 if len(sizes) < 2 else max(len(sizes) // 5, 1)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=30), min_size=4, max_size=4), st.integers(0, 3))
def test_a_fifth_of_the_groups_of_each_cell_validates_and_the_others_train(cells: list[list[int]], seed: int) -> None:
    rows = [
        Row(f"d{c // 2}", f"c{c % 2}", f"{c}/{g}/{i}", group=f"{c}/{g}")
        for c, sizes in enumerate(cells)
        for g, n in enumerate(sizes)
        for i in range(n)
    ] + [Row("t", f"c{k}", f"t/{k}") for k in (0, 1)]
    data = Manifest.from_rows("made", None, rows)
    split = make_split(data, setting_for(data, "Natural", "t"), seed, groups=samples_kept_together(data))
    assert data.groups is not None
    assert len(split.test) == 0
    for c, sizes in enumerate(cells):
        here = [data.groups[i] for i in split.validation if data.groups[i].startswith(f"{c}/")]
        assert len(set(here)) == plain_natural_validation(sizes)
        assert split.counts[c // 2, c % 2] + len(here) == sum(sizes)
    single = [(f"d{c // 2}", f"c{c % 2}") for c, sizes in enumerate(cells) if len(sizes) == 1]
    assert split.unvalidated == single


@pytest.mark.parametrize("target", ["d0", NO_TARGET])
def test_without_groups_each_sample_is_one(target: str) -> None:
    data = made.manifest({f"d{d}": {"a": 50 + d, "b": 9, "c": 1} for d in range(3)})
    split = make_split(data, setting_for(data, "Natural", target))
    assert split.held.tolist() == [[10, 1, 0]] * len(split.sources)
    assert split.copies_together is None


def test_another_share_and_settings_that_have_none() -> None:
    data = made.manifest(made.even(3, 2, 40))
    assert make_split(data, setting_for(data, "Natural", "d0", validation=0.5)).held.tolist() == [[20, 20]] * 2
    assert make_split(data, setting_for(data, "Natural", "d0", validation=7)).held.tolist() == [[7, 7]] * 2
    with pytest.raises(ConfigError, match="Natural"):
        make_split(data, setting_for(data, "Balanced", "d0", validation=0.5))


@pytest.mark.parametrize("name", sorted(GENERATORS))
def test_a_group_that_is_larger_than_a_part_makes_it_larger(name: str) -> None:
    """Three patients with 10 images of each class: 5 validation images would divide one."""
    rows = [
        Row(d, k, f"{d}/{k}/{patient}/{i}", group=f"{d}{k}{patient}")
        for d in ("s", "r", "t") for k in ("a", "b") for patient in range(3) for i in range(10)
    ]  # fmt: skip
    data = Manifest.from_rows("made", None, rows)
    setting = setting_for(data, name, "t", validation=5)
    split = make_split(data, setting, shrink=True, groups=samples_kept_together(data))
    assert split.held.tolist() == [[10, 10]] * 2
    assert split.counts.tolist() == [[max(n // 10 * 10, 10) for n in row.values()] for row in setting.counts.values()]


def test_copies_join_groups(tmp_path: Path) -> None:
    """A copy of an image of a patient is one of that patient's images, also where the column does not say so."""
    root = make_tree(tmp_path / "data", ("a", "b", "t"), ("cat", "dog"), each=6)
    cats = sorted((root / "a" / "cat").iterdir())
    cats[2].write_bytes(cats[0].read_bytes())
    (root / "groups.csv").write_text("image,group\na/cat/0.png,p\na/cat/1.png,p\na/cat/3.png,q\nb/dog/0.png,q\n")
    data = load_dataset(root)
    found = samples_kept_together(data, tmp_path / "cache")
    assert found is not None
    members = [np.flatnonzero(found == group) for group in np.unique(found)]
    assert [[data.paths[i] for i in rows] for rows in members if len(rows) > 1] == [
        ["a/cat/0.png", "a/cat/1.png", "a/cat/2.png"],
        ["a/cat/3.png", "b/dog/0.png"],
    ]


def test_a_group_with_a_sample_that_the_data_mark_is_tested_on() -> None:
    data = made.manifest({name: {"a": 10, "b": 10} for name in ("s", "r", "t")})
    first = data.indices("s", "a")[:3]
    groups: IntArray = np.arange(len(data))
    groups[first] = first[0]
    marked = dataclasses.replace(data, splits=tuple("test" if i == first[1] else "" for i in range(len(data))))
    for seed in range(5):
        split = make_split(marked, setting_for(marked, "Natural", "t"), seed, groups=groups)
        assert set(first) <= set(split.test)


@pytest.mark.slow
def test_the_lesions_of_ham10000_are_on_one_side() -> None:
    data = load_dataset(ham10000())
    groups = samples_kept_together(data)
    for target in (*data.domain_names, NO_TARGET):
        split = make_split(data, setting_for(data, "Natural", target), groups=groups)
        sides = parts_of_groups(data, split).values()
        assert sum(len(found - {"test"}) > 1 for found in sides) == 0
        assert len(split.validation) > 1400
        assert (split.held > 0).sum() == (split.available > 0).sum()
