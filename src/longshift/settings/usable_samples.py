"""Which samples training and validation may take: all but those that the data reserve for the test."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from longshift.array_types import IntArray
from longshift.data import Manifest
from longshift.settings.setting import Counts, as_counts


def reserved_for_test(manifest: Manifest) -> npt.NDArray[np.bool_]:
    """(N,) rows that the data's own split column marks "test": they are never trained or validated on."""
    if manifest.splits is None:
        return np.zeros(len(manifest), dtype=np.bool_)
    return np.array([name.strip().casefold() == "test" for name in manifest.splits], dtype=np.bool_)


def usable_table(manifest: Manifest) -> IntArray:
    """Samples per (domain, class) that training and validation may take."""
    table = manifest.count_table()
    reserved = reserved_for_test(manifest)
    np.subtract.at(table, (manifest.domains[reserved], manifest.labels[reserved]), 1)
    return table


def usable_counts(manifest: Manifest) -> Counts:
    """The same by name: what a setting may be made from."""
    return as_counts(manifest.domain_names, manifest.classes, usable_table(manifest))
