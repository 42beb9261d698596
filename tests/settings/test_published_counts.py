"""The generators against the published counts, entry by entry."""

from __future__ import annotations

import pytest

from longshift.data import benchmarks
from longshift.errors import UsageError
from longshift.settings import canonical_setting, paper_generator, published
from longshift.settings.published_counts import published_settings

EXACT = [
    ("TotalHeavyTail", "VLCS"),
    ("TotalHeavyTail", "PACS"),
    ("TotalHeavyTail", "OfficeHome"),
    ("TotalHeavyTail", "DomainNet"),
    ("Duality", "PACS"),
    ("Duality", "OfficeHome"),
    ("Duality", "DomainNet"),
    ("Cross", "PACS"),
    ("Cross", "OfficeHome"),
]
ENTRIES = {"VLCS": 4 * 3 * 5, "PACS": 4 * 3 * 7, "OfficeHome": 4 * 3 * 65, "DomainNet": 6 * 5 * 345}


def differences(setting: str, benchmark: str) -> tuple[int, dict[tuple[str, str, str], tuple[int, int]]]:
    """How many entries there are, and those where (generated, published) differ."""
    compared, found = 0, {}
    totals = benchmarks.get_benchmark(benchmark).totals
    for target in totals:
        made = paper_generator(setting, benchmark).generate(totals, target)
        expected = published(benchmark, setting, target)
        assert made.sources == expected.sources
        assert made.validation == expected.validation
        for source, row in expected.counts.items():
            for name, n in row.items():
                compared += 1
                if made.counts[source][name] != n:
                    found[target, source, name] = (made.counts[source][name], n)
    return compared, found


@pytest.mark.parametrize(("setting", "benchmark"), EXACT)
def test_the_generator_reproduces_every_published_count(setting: str, benchmark: str) -> None:
    assert differences(setting, benchmark) == (ENTRIES[benchmark], {})


def test_vlcs_duality_differs_only_where_the_published_counts_were_edited() -> None:
    edited = {("V", "L", "car"): (2, 3), ("V", "L", "chair"): (11, 13), ("V", "L", "dog"): (19, 22)}
    assert differences("Duality", "VLCS") == (60, edited)


def test_vlcs_cross_differs_only_where_the_published_counts_were_edited() -> None:
    assert differences("Cross", "VLCS") == (60, {("V", "S", "chair"): (1, 5), ("V", "S", "person"): (1, 19)})


def test_what_is_published() -> None:
    assert {name: published_settings(name) for name in benchmarks.all_benchmarks()} == {
        "VLCS": ("GINIDG", "TotalHeavyTail", "Duality", "Cross"),
        "PACS": ("GINIDG", "TotalHeavyTail", "Duality", "Cross"),
        "OfficeHome": ("TotalHeavyTail", "Duality", "Cross"),
        "DomainNet": ("TotalHeavyTail", "Duality"),
    }


def test_thresholds_and_validation_sizes() -> None:
    thresholds = {
        ("PACS", "GINIDG", "A"): (200, 50, 25),
        ("PACS", "Duality", "A"): (100, 30, 15),
        ("PACS", "Duality", "P"): (100, 15, 15),
        ("PACS", "Cross", "S"): (120, 30, 15),
        ("VLCS", "TotalHeavyTail", "V"): (200, 14, 5),
        ("OfficeHome", "Duality", "R"): (19, 10, 5),
        ("DomainNet", "Duality", "clip"): (100, 30, 5),
        ("DomainNet", "Duality", "info"): (80, 25, 5),
        ("DomainNet", "Duality", "real"): (60, 20, 5),
        ("DomainNet", "TotalHeavyTail", "sketch"): (300, 50, 5),
    }
    for key, expected in thresholds.items():
        found = published(*key)
        assert (found.many, found.few, found.validation) == expected


def test_a_published_row() -> None:
    # Figure of the Duality setting, PACS, target photo.
    found = published("pacs", "duality", "Photo")
    assert found.target == "P"
    classes = ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")
    assert found.table(classes).tolist() == [[156, 9, 20, 2, 4, 52, 347], [1, 5, 2, 35, 16, 1, 1], [8] * 7]


@pytest.mark.parametrize(("text", "name"), [("idg", "GINIDG"), ("ginidg", "GINIDG"), (" duality ", "Duality")])
def test_names_in_any_case(text: str, name: str) -> None:
    assert canonical_setting(text) == name


def test_unknown_names_get_suggestions() -> None:
    with pytest.raises(UsageError, match="TotalHeavyTail"):
        canonical_setting("HeavyTail")
    with pytest.raises(UsageError, match="PACS"):
        published("PACZ", "Duality", "A")
    with pytest.raises(UsageError, match="photo"):
        published("PACS", "Duality", "phota")
    with pytest.raises(UsageError, match="OfficeHome"):
        published("OfficeHome", "GINIDG", "A")
    with pytest.raises(UsageError, match="GINIDG"):
        paper_generator("GINIDG", "PACS")
