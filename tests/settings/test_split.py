"""Splits: parts, seeds, files, the data's own split column, shortages."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from longshift.data import benchmarks, find_copies, load_dataset
from longshift.data.manifest import Manifest, Row
from longshift.errors import ConfigError, LongshiftError
from longshift.settings import (
    GENERATORS,
    Natural,
    Setting,
    Split,
    explicit_setting,
    load_split,
    make_split,
    published,
    read_recipe,
    samples_kept_together,
    save_split,
)
from longshift.settings.lookup import setting_for
from longshift.settings.split import PARTS
from tests.data.trees import make_tree
from tests.settings import made
from tests.settings.made import manifest


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    """Any folder names: any text that Python can hold, also what is not valid UTF-8 on disk."""
    names = st.text(st.characters(exclude_characters="/\0", exclude_categories=()), min_size=1, max_size=10)
    domains = draw(st.lists(names, min_size=2, max_size=5, unique=True))
    classes = draw(st.lists(names, min_size=2, max_size=5, unique=True))
    sizes = draw(
        st.lists(st.integers(0, 12), min_size=len(domains) * len(classes), max_size=len(domains) * len(classes))
    )
    cells = [(domain, label) for domain in domains for label in classes]
    rows = [
        Row(domain, label, f"{domain}/{label}/{i}.png")
        for (domain, label), size in zip(cells, sizes, strict=True)
        for i in range(size)
    ]
    rows += [Row(domains[0], classes[0], "x/a"), Row(domains[1], classes[1], "x/b")]
    return Manifest.from_rows("any", None, rows)


def names(split: Split, manifest: Manifest) -> dict[str, list[str]]:
    return {part: [manifest.paths[i] for i in split.part(part)] for part in PARTS}


@settings(deadline=None)
@given(
    data=st.data(),
    manifest=manifests(),
    name=st.sampled_from(sorted(GENERATORS)),
    seed=st.integers(0, 2**31),
    validation=st.integers(0, 8),
)
def test_parts_never_overlap_and_lose_nothing(
    data: st.DataObject, manifest: Manifest, name: str, seed: int, validation: int
) -> None:
    target = data.draw(st.sampled_from(manifest.domain_names))
    totals = manifest.counts()
    if len(totals) < 2 or len(manifest.classes) < 2:
        return
    setting = GENERATORS[name](validation=validation).generate(totals, target)
    split = make_split(manifest, setting, seed, shrink=True)
    parts = [split.part(part) for part in PARTS]
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(manifest)))
    assert {manifest.domain_names[d] for d in manifest.domains[split.target_indices]} <= {target}
    for part in PARTS[:3]:
        keys = [
            (split.sources.index(manifest.domain_names[manifest.domains[i]]), int(manifest.labels[i]), int(i))
            for i in split.part(part)
        ]
        assert keys == sorted(keys)
        table = np.zeros_like(split.counts)
        for d, k, _ in keys:
            table[d, k] += 1
        if part == "train":
            assert table.tolist() == split.counts.tolist()
            assert (table <= setting.table(manifest.classes)).all()
        if part == "validation":
            assert table.max() <= validation
    again = make_split(manifest, setting, seed, shrink=True)
    assert again.fingerprint == split.fingerprint
    assert names(again, manifest) == names(split, manifest)


@settings(deadline=None, max_examples=25)
@given(manifest=manifests(), seed=st.integers(0, 2**31))
def test_a_saved_split_comes_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, manifest: Manifest, seed: int
) -> None:
    path = tmp_path_factory.mktemp("split") / "s.json"
    setting = Natural(validation=2).generate(manifest.counts(), manifest.domain_names[0])
    split = make_split(manifest, setting, seed, shrink=True)
    save_split(split, path)
    loaded = load_split(path, manifest)
    assert names(loaded, manifest) == names(split, manifest)
    for field in ("dataset", "setting", "target", "split_seed", "classes", "sources", "shots", "many", "few"):
        assert getattr(loaded, field) == getattr(split, field)
    assert loaded.fingerprint == split.fingerprint == read_recipe(path).fingerprint
    assert loaded.counts.tolist() == split.counts.tolist()
    assert read_recipe(path).sizes == {part: len(split.part(part)) for part in PARTS}


def test_the_order_is_that_of_sha256_over_seed_and_path() -> None:
    manifest = made.manifest(made.even(2, 2, 9))
    split = make_split(manifest, Natural(validation=2, test=0.5).generate(manifest.counts(), "d1"), split_seed=7)
    paths = [f"d0/c1/{i:04d}.png" for i in range(9)]
    paths.sort(key=lambda path: hashlib.sha256(f"7/{path}".encode()).hexdigest())
    chosen = names(split, manifest)
    assert {p for p in chosen["validation"] if "/c1/" in p} == set(paths[:2])
    assert {p for p in chosen["train"] if "/c1/" in p} == set(paths[2:5])
    assert {p for p in chosen["test"] if "/c1/" in p} == set(paths[5:])


def test_known_hash() -> None:
    # Another machine, another year, other library versions: the same files.
    manifest = made.manifest(made.even(3, 3, 20))
    split = make_split(manifest, Natural(validation=5).generate(manifest.counts(), "d2"), split_seed=3)
    assert split.fingerprint == "82d633d85a6c0a04dfd34b20303c74c500e8ef41f3476fdddf6e906f5fdad1ae"


def test_other_seeds_choose_other_files_with_the_same_counts() -> None:
    manifest = made.manifest(made.even(3, 3, 40))
    setting = Natural().generate(manifest.counts(), "d0")
    first, second = make_split(manifest, setting, 0), make_split(manifest, setting, 1)
    assert first.counts.tolist() == second.counts.tolist()
    assert set(first.train) != set(second.train)
    assert first.fingerprint != second.fingerprint


def test_the_order_of_the_files_does_not_matter() -> None:
    manifest = made.manifest(made.even(3, 3, 20))
    backwards = np.arange(len(manifest))[::-1]
    turned = Manifest(
        manifest.name,
        None,
        tuple(manifest.paths[i] for i in backwards),
        manifest.labels[backwards],
        manifest.domains[backwards],
        manifest.classes,
        manifest.domain_names,
    )
    setting = Natural().generate(manifest.counts(), "d0")
    one, other = make_split(manifest, setting), make_split(turned, setting)
    assert one.fingerprint == other.fingerprint
    assert {p: set(v) for p, v in names(one, manifest).items()} == {p: set(v) for p, v in names(other, turned).items()}


def test_settings_share_their_validation_set_and_training_sets_nest() -> None:
    manifest = made.manifest(made.even(3, 3, 40))
    small = make_split(manifest, explicit_setting(made.even(3, 3, 10), "d0"))
    large = make_split(manifest, explicit_setting(made.even(3, 3, 20), "d0"))
    assert small.validation.tolist() == large.validation.tolist()
    assert set(small.train) < set(large.train)


def test_shortages_are_named() -> None:
    manifest = made.manifest({"t": {"a": 5, "b": 5}, "s": {"a": 14, "b": 30}, "r": {"a": 20, "b": 3}})
    setting = explicit_setting({"s": {"a": 9, "b": 9}, "r": {"a": 9, "b": 9}}, "t", validation=5)
    with pytest.raises(LongshiftError) as caught:
        make_split(manifest, setting)
    assert caught.value.exit_code == 1
    assert [cell for cell in ("s/a", "s/b", "r/a", "r/b") if cell in str(caught.value)] == ["s/a", "r/b"]
    split = make_split(manifest, setting, shrink=True)
    assert split.counts.tolist() == [[9, 9], [9, 1]]
    chosen = names(split, manifest)
    assert [len([p for p in chosen[part] if p.startswith("s/a")]) for part in PARTS[:3]] == [9, 5, 0]
    assert [len([p for p in chosen[part] if p.startswith("r/b")]) for part in PARTS[:3]] == [1, 2, 0]


def test_the_one_published_count_that_its_totals_cannot_meet() -> None:
    manifest = made.manifest(benchmarks.get_benchmark("VLCS").totals, "VLCS")
    for setting in ("GINIDG", "TotalHeavyTail", "Duality", "Cross"):
        for target in "CLVS":
            if (setting, target) == ("Duality", "V"):
                with pytest.raises(LongshiftError, match="S/bird"):
                    make_split(manifest, published("VLCS", setting, target))
            else:
                make_split(manifest, published("VLCS", setting, target))
    split = make_split(manifest, published("VLCS", "Duality", "V"), shrink=True)
    assert split.counts.tolist() == published("VLCS", "Duality", "V").table(manifest.classes).tolist()


def test_a_class_that_a_source_lacks_is_no_shortage() -> None:
    manifest = made.manifest({"t": {"a": 5, "b": 5}, "s": {"a": 20, "b": 20}, "r": {"a": 20, "b": 0}})
    split = make_split(manifest, Natural().generate(manifest.counts(), "t"))
    assert split.sources == ("r", "s")
    assert split.counts.tolist() == [[12, 0], [12, 12]]
    assert len(split.validation) == 15


def test_all_mistakes_of_a_setting_are_listed() -> None:
    manifest = made.manifest({"photo": {"dog": 9, "cat": 9}, "art": {"dog": 9, "cat": 9}})
    setting = Setting("mine", "art", {"foto": {"dog": 1}, "art": {"kat": 2}}, 1, 1, 0.5)
    with pytest.raises(ConfigError) as caught:
        make_split(manifest, setting)
    assert len(caught.value.mistakes) == 4
    for name, mistake in zip(("foto", "kat", "art", "Natural"), caught.value.mistakes, strict=True):
        assert name in mistake
    with pytest.raises(ConfigError, match="source"):
        make_split(manifest, Setting("mine", "art", {}, 1, 1, 1))


class TestLoading:
    """What can be wrong with a split file or with the data it meets."""

    @pytest.fixture
    def manifest(self) -> Manifest:
        return made.manifest(made.even(3, 2, 20))

    @pytest.fixture
    def path(self, manifest: Manifest, tmp_path: Path) -> Path:
        path = tmp_path / "split.json"
        save_split(make_split(manifest, Natural().generate(manifest.counts(), "d0")), path)
        return path

    def test_other_numbers(self, path: Path) -> None:
        counts = made.even(3, 2, 20)
        counts["d1"]["c1"], counts["d0"]["c0"] = 19, 21
        with pytest.raises(LongshiftError) as caught:
            load_split(path, made.manifest(counts, "changed"))
        changed = [line for line in str(caught.value).splitlines() if line.startswith("  - ")]
        assert [line[4:10] for line in changed] == ["d1, c1", "d0, c0"]

    def test_other_names(self, path: Path) -> None:
        with pytest.raises(LongshiftError, match="d2"):
            load_split(path, made.manifest(made.even(2, 2, 20)))
        with pytest.raises(LongshiftError, match="c2"):
            load_split(path, made.manifest(made.even(3, 3, 20)))

    def test_other_files(self, path: Path, manifest: Manifest) -> None:
        renamed = Manifest(
            manifest.name,
            None,
            tuple(p.replace("0003", "9999") for p in manifest.paths),
            manifest.labels,
            manifest.domains,
            manifest.classes,
            manifest.domain_names,
        )
        with pytest.raises(LongshiftError, match="hash"):
            load_split(path, renamed)

    def test_damaged(self, path: Path, manifest: Manifest) -> None:
        document = json.loads(path.read_text())
        del document["sources"]["d1"]["train"]
        path.write_text(json.dumps(document))
        with pytest.raises(LongshiftError, match=r"d1\.train"):
            load_split(path, manifest)
        path.write_text("[1]")
        with pytest.raises(LongshiftError, match=r"split\.json"):
            load_split(path, manifest)
        path.write_text("{")
        with pytest.raises(LongshiftError, match=r"split\.json"):
            load_split(path, manifest)


def test_benchmarks_keep_their_published_splits(tmp_path: Path) -> None:
    """Copies inside data with the names of a benchmark are samples like others."""
    names = benchmarks.get_benchmark("PACS")
    root = make_tree(tmp_path / "data", names.domains, names.classes, each=2)
    for folder in root.glob("*/*"):
        first, second = sorted(folder.iterdir())
        second.write_bytes(first.read_bytes())
    data = load_dataset(root)
    assert find_copies(data, tmp_path / "cache") is not None
    assert samples_kept_together(data, tmp_path / "cache") is None


@pytest.mark.parametrize("name", list(GENERATORS))
def test_settings_are_made_from_the_rows_that_are_not_marked(name: str) -> None:
    data = manifest({f"d{d}": {f"c{k}": 40 + 10 * k + d for k in range(3)} for d in range(4)})
    marked = dataclasses.replace(data, splits=tuple("test" if i % 2 else "train" for i in range(len(data))))
    free = np.flatnonzero([mark != "test" for mark in marked.splits or ()])
    rows = [(data.domain_names[data.domains[i]], data.classes[data.labels[i]], data.paths[i]) for i in free]
    alone = Manifest.from_rows("alone", None, [Row(*row) for row in rows])
    setting = setting_for(marked, name, "d0")
    assert setting.counts == setting_for(alone, name, "d0").counts
    split = make_split(marked, setting)  # without shrinking
    assert set(split.train) | set(split.validation) <= set(free)
    assert split.train.tolist() == [int(free[i]) for i in make_split(alone, setting).train]
    own = setting_for(marked, Natural(validation=5), "d0")  # a generator of one's own sees the same counts
    assert len(make_split(marked, own).train) == own.table().sum()
