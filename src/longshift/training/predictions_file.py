"""predictions.npz: logits, features, labels and domains of each set, for later analysis."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longshift.errors import LongshiftError
from longshift.files import replacing


def write_predictions(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write the arrays by rename."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def read_predictions(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays by name, such as "target_logits"; sets without samples have none."""
    try:
        with np.load(path, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except Exception as error:  # zipfile, zlib and numpy raise nearly anything on damaged files
        raise LongshiftError(f"cannot read {path}: {error}. Remove it to do without.") from error
