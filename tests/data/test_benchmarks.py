"""Benchmarks: published names and counts, spellings of domains and classes, differences."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from longshift.data import benchmarks, load_dataset
from longshift.data.manifest import Manifest, Row
from longshift.errors import LongshiftError
from tests.data.trees import ROOT, pacs

NAMES = ("VLCS", "PACS", "OfficeHome", "DomainNet")


def published(name: str) -> Any:
    """The published counts, from $LONGSHIFT_SETTINGS (by default ../shared/settings)."""
    path = Path(os.environ.get("LONGSHIFT_SETTINGS", ROOT / ".." / "shared" / "settings")) / f"{name}.json"
    if not path.exists():
        pytest.skip(f"no published counts {path}; set LONGSHIFT_SETTINGS to a folder that has them")
    return json.loads(path.read_text())


def dataset(counts: dict[str, dict[str, int]]) -> Manifest:
    """A manifest with these counts; no files."""
    rows = (
        Row(domain, label, f"{domain}/{label}/{i}.jpg")
        for domain, row in counts.items()
        for label, count in row.items()
        for i in range(count)
    )
    return Manifest.from_rows("made", Path(), rows)


def full(name: str) -> dict[str, dict[str, int]]:
    """The published totals under the full names of the domains."""
    entry = benchmarks.get_benchmark(name)
    return {entry.domains[key]: dict(row) for key, row in entry.totals.items()}


@pytest.mark.parametrize("name", NAMES)
def test_domains_and_totals_are_the_published_ones(name: str) -> None:
    entry, source = benchmarks.get_benchmark(name), published(name)
    assert entry.domains == source["domains"]
    assert {key: dict(row) for key, row in entry.totals.items()} == source["totals"]
    assert sorted(entry.classes) == sorted(next(iter(source["totals"].values())))


@pytest.mark.parametrize(
    ("name", "images", "classes"),
    [("VLCS", 7510, 5), ("PACS", 9991, 7), ("OfficeHome", 15588, 65), ("DomainNet", 596006, 345)],
)
def test_sizes(name: str, images: int, classes: int) -> None:
    entry = benchmarks.get_benchmark(name)
    assert sum(sum(row.values()) for row in entry.totals.values()) == images
    assert len(entry.classes) == classes
    assert len(entry.class_spellings) >= classes  # no two classes have the same plain spelling


@pytest.mark.parametrize("spelling", ["pacs", "PACS", "Office-Home", "office_home", "domainnet"])
def test_benchmarks_are_found_in_any_spelling(spelling: str) -> None:
    assert benchmarks.plain(benchmarks.get_benchmark(spelling).name) == benchmarks.plain(spelling)


@pytest.mark.parametrize(
    ("name", "spellings"),
    [
        ("VLCS", "Caltech101 LabelMe VOC2007 SUN09"),
        ("VLCS", "caltech labelme pascal_voc sun"),
        ("VLCS", "CALTECH LABELME PASCAL SUN"),
        ("VLCS", "C L V S"),
        ("PACS", "art_painting cartoon photo sketch"),
        ("PACS", "art cartoon photo sketch"),
        ("PACS", "Art-Painting Cartoon Photo Sketch"),
        ("OfficeHome", "Art Clipart Product Real+World"),
        ("OfficeHome", "Art Clipart Product Real-World"),
        ("OfficeHome", "art clipart product RealWorld"),
        ("OfficeHome", "art clipart product real"),
        ("OfficeHome", "A C P real_world"),
        ("DomainNet", "clipart infograph painting quickdraw real sketch"),
        ("DomainNet", "clip info paint quick real sketch"),
    ],
)
def test_spellings_of_domains(name: str, spellings: str) -> None:
    own = [spelling.replace("+", " ") for spelling in spellings.split()]
    manifest = dataset({domain: {"x": 1} for domain in own})
    assert list(benchmarks.identify_domains(manifest, name).items()) == list(
        zip(benchmarks.get_benchmark(name).domains, own, strict=True)
    )


def test_missing_domains_are_named() -> None:
    manifest = dataset({"photo": {"dog": 1}, "art": {"dog": 1}, "drawings": {"dog": 1}})
    with pytest.raises(LongshiftError, match="cartoon, sketch"):
        benchmarks.identify_domains(manifest, "PACS")


def test_two_domains_of_the_same_name_are_refused() -> None:
    manifest = dataset({"art": {"dog": 1}, "art_painting": {"dog": 1}})
    with pytest.raises(LongshiftError, match="art_painting"):
        benchmarks.identify_domains(manifest, "PACS")


def test_spellings_of_classes() -> None:
    own = [label.replace("_", " ").lower() for label in benchmarks.get_benchmark("OfficeHome").classes]
    manifest = dataset({"Art": dict.fromkeys(own, 1)})
    found = benchmarks.identify_classes(manifest, "OfficeHome")
    assert found["Alarm_Clock"] == "alarm clock"
    assert sorted(found.values()) == sorted(own)
    numbered = dataset({"sun": {str(i): 1 for i in range(5)}})
    assert list(benchmarks.identify_classes(numbered, "VLCS")) == ["bird", "car", "chair", "dog", "person"]
    with pytest.raises(LongshiftError, match="person"):
        benchmarks.identify_classes(dataset({"sun": {str(i): 1 for i in range(4)}}), "VLCS")


@pytest.mark.parametrize("name", ["VLCS", "PACS", "OfficeHome"])
def test_the_published_counts_do_not_differ(name: str) -> None:
    assert benchmarks.compare_counts(dataset(full(name)), name) == []


def test_differences_are_named() -> None:
    counts = full("PACS")
    counts["photo"]["dog"] -= 1
    counts["photo"]["unicorn"] = 2
    del counts["sketch"]["house"]
    counts["extra"] = {"dog": 4}
    assert [tuple(difference) for difference in benchmarks.compare_counts(dataset(counts), "PACS")] == [
        ("extra", "dog", 0, 4),
        ("photo", "dog", 189, 188),
        ("photo", "unicorn", 0, 2),
        ("sketch", "house", 80, 0),
    ]


def test_pacs_has_the_published_counts() -> None:
    manifest = load_dataset(pacs())
    assert benchmarks.compare_counts(manifest, "PACS") == []
    totals = published("PACS")
    assert manifest.counts() == {totals["domains"][key]: row for key, row in totals["totals"].items()}
