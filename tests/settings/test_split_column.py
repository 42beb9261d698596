"""Rows that the data's own split column marks "test" stay out of training and validation."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from longshift.data import load_dataset
from longshift.data.manifest import Manifest, Row
from longshift.settings.generators import GENERATORS, Natural
from longshift.settings.lookup import setting_for
from longshift.settings.split import load_split, make_split, save_split
from tests.settings.made import manifest


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


def test_marked_rows_are_only_tested_on(tmp_path: Path) -> None:
    digits = load_dataset("digits")
    marks = tuple("Test" if i % 4 == 0 else "train" for i in range(len(digits)))
    marked = dataclasses.replace(digits, splits=marks)
    setting = setting_for(marked, "Balanced", "ink", validation=3)
    split = make_split(marked, setting, 0, shrink=True)
    reserved = np.flatnonzero(np.array([m == "Test" for m in marks]) & (digits.domains != 1))
    sources = np.flatnonzero(np.isin(digits.domains, [digits.domain_names.index(s) for s in split.sources]))
    assert not set(np.concatenate([split.train, split.validation])) & set(reserved)
    assert set(reserved) & set(sources) <= set(split.test)
    assert sorted([*split.train, *split.validation, *split.test]) == sorted(sources)
    save_split(split, marked, tmp_path / "split.json")
    assert load_split(tmp_path / "split.json", marked).fingerprint == split.fingerprint
    free = make_split(digits, setting, 0, shrink=True)
    assert free.fingerprint != split.fingerprint
