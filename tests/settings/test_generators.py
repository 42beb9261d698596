"""The generators on any dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from longshift.errors import UsageError
from longshift.settings import (
    GENERATORS,
    Balanced,
    Cross,
    Duality,
    Generator,
    Natural,
    Setting,
    TotalHeavyTail,
    ratios,
    setting_for,
)
from longshift.settings.generators import TailGenerator
from tests.settings import made

Totals = Mapping[str, Mapping[str, int]]
TAILED = [cls for cls in GENERATORS.values() if issubclass(cls, TailGenerator)]


@st.composite
def datasets(draw: st.DrawFn, smallest: int = 0) -> dict[str, dict[str, int]]:
    names = st.text(min_size=1, max_size=12)
    domains = draw(st.lists(names, min_size=2, max_size=8, unique=True))
    classes = draw(st.lists(names, min_size=2, max_size=12, unique=True))
    size = st.integers(smallest, 300)
    return {domain: {name: draw(size) for name in classes} for domain in domains}


@pytest.mark.parametrize("name", GENERATORS)
@settings(deadline=None)
@given(data=st.data(), totals=datasets(), validation=st.integers(0, 30), ratio=st.none() | st.floats(1, 300))
def test_never_more_than_there_is_and_one_of_each_class(
    name: str, data: st.DataObject, totals: Totals, validation: int, ratio: float | None
) -> None:
    cls = GENERATORS[name]
    options: dict[str, Any] = {"ratio": ratio} if ratio is not None and issubclass(cls, TailGenerator) else {}
    generator = cls(validation=validation, **options)
    target = data.draw(st.sampled_from(list(totals)))
    setting = generator.generate(totals, target)
    assert setting == generator.generate(totals, target)
    assert setting.sources == tuple(domain for domain in totals if domain != target)
    for source, row in setting.counts.items():
        assert list(row) == list(totals[source])
        for label, n in row.items():
            total = totals[source][label]
            if total == 0:
                assert n == 0
            else:  # training and validation together fit, unless validation alone takes all but the one sample
                assert 1 <= n <= max(total - validation, 1)


@settings(deadline=None, max_examples=50)
@given(totals=datasets(smallest=60), ratio=st.floats(1, 30))
def test_total_heavy_tail_has_the_stated_ratio(totals: Totals, ratio: float) -> None:
    target = next(iter(totals))
    setting = TotalHeavyTail(ratio=ratio, validation=5).generate(totals, target)
    cr = ratios(setting.table(), setting.sources).cr
    assert cr == pytest.approx(ratio, abs=0.5)  # the largest count is a whole number


@pytest.mark.parametrize("cls", [Cross, Duality])
@settings(deadline=None, max_examples=50)
@given(totals=datasets(smallest=60), ratio=st.floats(1, 30))
def test_major_domains_have_the_stated_ratio(cls: type[Cross] | type[Duality], totals: Totals, ratio: float) -> None:
    setting = cls(ratio=ratio, validation=5).generate(totals, next(iter(totals)))
    ecr = ratios(setting.table(), setting.sources).ecr
    sizes = {source: sum(n - 5 for n in totals[source].values()) for source in setting.sources}
    by_size = sorted(setting.sources, key=lambda source: (sizes[source], source))
    odd = len(by_size) % 2 if cls is Cross and len(by_size) > 1 else 0  # Cross: the smallest may be balanced
    assert ecr[by_size[odd]] == pytest.approx(ratio, abs=0.5)


def test_duality_mirrors_the_minor_domain_and_levels_the_largest() -> None:
    totals = {name: {f"c{k}": n + k for k in range(6)} for name, n in (("t", 50), ("s", 100), ("m", 200), ("l", 300))}
    table = dict(zip("sml", Duality().generate(totals, "t").table(), strict=True))
    assert (np.diff(table["s"]) >= 0).all()  # c5 is largest, so the tail rises with k
    assert (np.diff(table["m"]) <= 0).all()
    assert len(set(table["l"])) == 1
    assert 40 <= table["l"].sum() <= 54  # 40 to 50 drawn, rounded up to whole samples per class


def test_duality_of_two_sources_mirrors_the_second() -> None:
    totals = {name: {f"c{k}": n + k for k in range(6)} for name, n in (("t", 50), ("s", 100), ("m", 200))}
    table = dict(zip("sm", Duality().generate(totals, "t").table(), strict=True))
    assert (np.diff(table["s"]) >= 0).all()
    assert table["s"][-1] > table["s"][0]
    assert (np.diff(table["m"]) <= 0).all()
    assert table["m"][0] > table["m"][-1]


def test_duality_draws_one_stream_over_the_targets() -> None:
    totals = made.even(4, 5, 100)
    first, again, other = (
        {target: generator.generate(totals, target) for target in totals}
        for generator in (Duality(), Duality(), Duality(seed=1))
    )
    assert first == again
    assert [s.counts for s in first.values()] != [s.counts for s in other.values()]
    sizes = {target: sorted(setting.table().sum(axis=1).tolist()) for target, setting in first.items()}
    assert len(set(map(tuple, sizes.values()))) > 1  # all domains are equal, so only the draws can differ


def test_cross_mirrors() -> None:
    totals = {name: {f"c{k}": n + k for k in range(6)} for name, n in (("t", 50), ("s", 100), ("m", 200), ("l", 300))}
    table = dict(zip("sml", Cross().generate(totals, "t").table(), strict=True))
    assert (np.diff(table["m"]) >= 0).all()
    assert (np.diff(table["l"]) <= 0).all()
    assert len(set(table["s"])) == 1
    mean = (table["m"] + table["l"]).sum() / 12
    assert table["s"][0] == int(0.3 * mean)


def test_balanced_and_natural_by_hand() -> None:
    totals = {"t": {"a": 1, "b": 1}, "s": {"a": 30, "b": 105}, "r": {"a": 55, "b": 0}}
    assert Balanced().generate(totals, "t").table().tolist() == [[20, 20], [20, 0]]
    assert Balanced(per_class=7).generate(totals, "t").table().tolist() == [[7, 7], [7, 0]]
    assert Natural().generate(totals, "t").table().tolist() == [[20, 80], [40, 0]]
    assert Natural(test=0.5, validation=0).generate(totals, "t").table().tolist() == [[15, 52], [27, 0]]


def test_given_thresholds_win() -> None:
    setting = Natural(many=9, few=2).generate(made.even(3, 3, 40), "d0")
    assert (setting.many, setting.few) == (9, 2)


def test_a_generator_of_ones_own() -> None:
    @dataclass(frozen=True)
    class OneEach:
        name: str = "OneEach"

        def generate(self, totals: Totals, target: str) -> Setting:
            counts = {domain: dict.fromkeys(row, 1) for domain, row in totals.items() if domain != target}
            return Setting(self.name, target, counts, 1, 1, 2)

    assert isinstance(OneEach(), Generator)
    assert isinstance(Duality(), Generator)
    found = setting_for(made.manifest(made.even(3, 2, 9)), OneEach(), "d1")
    assert found.counts == {"d0": {"c0": 1, "c1": 1}, "d2": {"c0": 1, "c1": 1}}


def test_mistakes_are_named() -> None:
    with pytest.raises(UsageError, match="d9"):
        Natural().generate(made.even(3, 2, 9), "d9")
    with pytest.raises(UsageError, match="domains"):
        Natural().generate(made.even(1, 2, 9), "d0")
    with pytest.raises(UsageError, match="classes"):
        Natural().generate(made.even(2, 1, 9), "d0")
    with pytest.raises(UsageError, match="validation"):
        Natural(validation=-1).generate(made.even(2, 2, 9), "d0")
    with pytest.raises(UsageError, match="test"):
        Natural(test=1).generate(made.even(2, 2, 9), "d0")
    with pytest.raises(UsageError, match="ratio"):
        TAILED[0](ratio=0.5).generate(made.even(2, 2, 9), "d0")
