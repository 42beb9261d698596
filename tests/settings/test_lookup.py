"""From a name to the setting for a dataset."""

from __future__ import annotations

import pytest

from longshift.data import benchmarks, load_dataset
from longshift.data.manifest import Manifest
from longshift.errors import LongshiftError, UsageError
from longshift.settings import (
    GENERATORS,
    Duality,
    find_target,
    make_split,
    published,
    ratios,
    recognize,
    setting_for,
)
from tests.settings import made

FOLDERS = {  # spellings seen in the wild
    "VLCS": {"C": "Caltech101", "L": "LabelMe", "V": "VOC2007", "S": "SUN09"},
    "PACS": {"A": "art", "C": "Cartoon", "P": "photo", "S": "sketch"},
    "OfficeHome": {"A": "Art", "C": "Clipart", "P": "Product", "R": "Real World"},
    "DomainNet": {
        "clip": "clipart", "info": "infograph", "paint": "painting", "quick": "quickdraw", "real": "real",
        "sketch": "sketch",
    },
}  # fmt: skip


def benchmark_like(name: str) -> Manifest:
    totals = benchmarks.get_benchmark(name).totals
    return made.manifest({FOLDERS[name][key]: row for key, row in totals.items()}, "images")


@pytest.mark.parametrize("name", FOLDERS)
def test_a_benchmark_gets_the_published_counts_under_its_own_names(name: str) -> None:
    totals = benchmarks.get_benchmark(name).totals  # one image a class will do: the names decide
    manifest = made.manifest({FOLDERS[name][key]: dict.fromkeys(row, 1) for key, row in totals.items()})
    assert recognize(manifest) == name
    for key, folder in FOLDERS[name].items():
        expected = published(name, "TotalHeavyTail", key)
        for target in (folder, key, folder.upper()):
            found = setting_for(manifest, "totalheavytail", target)
            assert found.target == folder
            assert found.sources == tuple(FOLDERS[name][source] for source in expected.sources)
            assert found.table(expected.classes).tolist() == expected.table().tolist()
            assert (found.many, found.few, found.validation) == (expected.many, expected.few, expected.validation)


def test_declared_or_denied() -> None:
    manifest = benchmark_like("PACS")
    generated = setting_for(manifest, "Duality", "photo", benchmark="none")
    assert generated == Duality(validation=5).generate(manifest.counts(), "photo")
    assert setting_for(manifest, "Duality", "photo", benchmark="pacs") == setting_for(manifest, "Duality", "photo")
    with pytest.raises(LongshiftError, match="OfficeHome"):
        setting_for(manifest, "Duality", "photo", benchmark="OfficeHome")
    with pytest.raises(UsageError, match="PACZ"):
        setting_for(manifest, "Duality", "photo", benchmark="PACZ")


def test_more_classes_than_the_benchmark_are_not_it() -> None:
    counts = benchmark_like("PACS").counts()
    counts["photo"]["zebra"] = 20
    manifest = made.manifest(counts)
    assert recognize(manifest) is None
    with pytest.raises(LongshiftError, match="zebra"):
        setting_for(manifest, "Duality", "photo", benchmark="PACS")


def test_a_further_domain_can_be_neither_target_nor_source_of_published_counts() -> None:
    counts = benchmark_like("PACS").counts()
    counts["neon"] = dict.fromkeys(counts["photo"], 30)
    manifest = made.manifest(counts)
    assert "neon" not in setting_for(manifest, "Duality", "photo").sources
    with pytest.raises(UsageError, match="neon"):
        setting_for(manifest, "Duality", "neon")


def test_a_stated_ratio_is_generated_on_a_benchmark_too() -> None:
    setting = setting_for(benchmark_like("PACS"), "TotalHeavyTail", "photo", ratio=20)
    assert ratios(setting.table(), setting.sources).cr == pytest.approx(20, abs=0.02)


@pytest.mark.parametrize("name", GENERATORS)
def test_digits(name: str) -> None:
    manifest = load_dataset("digits")
    for target in manifest.domain_names:
        setting = setting_for(manifest, name, target)
        split = make_split(manifest, setting)
        natural = name == "Natural"
        sources = [domain != target for domain in manifest.domain_names]
        assert setting.validation == (0.2 if natural else 5)
        assert len(split.validation) == (int((manifest.count_table()[sources] // 5).sum()) if natural else 5 * 10 * 3)
        if name not in ("Balanced", "Natural"):
            assert set(split.shots) == {"many", "medium", "few"}


@pytest.mark.parametrize(("smallest", "validation"), [(1, 1), (2, 1), (6, 2), (15, 5), (400, 5)])
def test_validation_is_at_most_a_third_of_the_smallest_class(smallest: int, validation: int) -> None:
    manifest = made.manifest({"t": {"a": 1, "b": 1}, "s": {"a": smallest, "b": 500}, "r": {"a": 500, "b": 0}})
    assert setting_for(manifest, "Balanced", "t").validation == validation


@pytest.mark.parametrize("name", GENERATORS)
def test_generated_settings_leave_a_test_wherever_three_samples_are(name: str) -> None:
    manifest = made.manifest({"t": {"a": 9, "b": 9}, **{f"s{n}": {"a": n, "b": n + 9} for n in (3, 4, 7, 50)}})
    make_split(manifest, setting_for(manifest, name, "t"))
    crowded = made.manifest({"t": {"a": 9, "b": 9}, **{f"s{n}": {"a": n, "b": n} for n in (7, 8, 9)}})
    make_split(crowded, setting_for(crowded, name, "t", validation=5))


def test_what_else_can_be_given() -> None:
    manifest = made.manifest(made.even(3, 2, 40))
    ready = Duality().generate(manifest.counts(), "d0")
    assert setting_for(manifest, ready, "d0") == ready
    assert setting_for(manifest, Duality(), "d0") == ready
    assert setting_for(manifest, {"d1": {"c0": 3, "c1": 4}}, "d0").counts == {"d1": {"c0": 3, "c1": 4}}
    assert setting_for(manifest, Duality(), "d0", validation=2).validation == 2
    with pytest.raises(UsageError, match="d0"):
        setting_for(manifest, ready, "d1")
    with pytest.raises(UsageError, match="ratio"):
        setting_for(manifest, ready, "d0", ratio=3)
    with pytest.raises(UsageError, match="Balanced"):
        setting_for(manifest, "balanced", "d0", ratio=3)
    with pytest.raises(UsageError, match="GINIDG"):
        setting_for(manifest, "GINIDG", "d0")


def test_find_target() -> None:
    manifest = made.manifest({"Real World": {"a": 1}, "Art": {"a": 1}})
    assert find_target(manifest, "real_world") == "Real World"
    with pytest.raises(UsageError, match="Art"):
        find_target(manifest, "Arr")
