"""Rows that the data's own split column marks "test" stay out of training and validation."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from longshift.data import load_dataset
from longshift.settings.resolve import setting_for
from longshift.settings.split import load_split, make_split, save_split


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
