"""Splits of the real PACS, from `$LONGSHIFT_PACS` (by default ../shared/data/PACS.zip)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from longshift.data import Manifest, load_dataset
from longshift.settings import make_split, published, setting_for
from longshift.settings.split import PARTS

PACS = Path(os.environ.get("LONGSHIFT_PACS", Path(__file__).parents[2] / ".." / "shared" / "data" / "PACS.zip"))
FOLDERS = {"A": "art_painting", "C": "cartoon", "P": "photo", "S": "sketch"}


@pytest.fixture(scope="module")
def pacs() -> Manifest:
    if not PACS.exists():
        pytest.skip(f"no PACS at {PACS}; set LONGSHIFT_PACS to the folder or .zip")
    return load_dataset(PACS)


@pytest.mark.parametrize("target", FOLDERS)
@pytest.mark.parametrize("name", ["GINIDG", "TotalHeavyTail", "Duality", "Cross"])
def test_splits_carry_exactly_the_published_counts(pacs: Manifest, name: str, target: str) -> None:
    expected = published("PACS", name, target)
    split = make_split(pacs, setting_for(pacs, name, target), split_seed=1)
    assert split.target == FOLDERS[target]
    assert split.sources == tuple(FOLDERS[source] for source in expected.sources)
    assert sorted(np.concatenate([split.part(part) for part in PARTS]).tolist()) == list(range(9991))
    for short, source in zip(expected.sources, split.sources, strict=True):
        for label, n in expected.counts[short].items():
            prefix = f"{source}/{label}/"
            found = {part: sum(pacs.paths[i].startswith(prefix) for i in split.part(part)) for part in PARTS}
            total = len(pacs.indices(source, label))
            held = expected.validation
            assert found == {"train": n, "validation": held, "test": total - n - held, "target": 0}
    assert all(pacs.paths[i].startswith(f"{FOLDERS[target]}/") for i in split.target_indices)
