"""Arrays as data of a fit: they are kept in a file, so that a fit can resume and its model can be evaluated again."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from longshift.errors import UsageError
from longshift.io import replacing

EXPECTED = "a path (folder, .zip, table or vectors), or arrays: fit(X, y, domains) with X of shape (N, length)"


def data_path(data: Any, y: Any, domains: Any, folder: Path) -> str:
    """The path that was given, or that of a file in `folder` with the arrays that were given.

    Raises:
        TypeError: The data are neither.
    """
    if isinstance(data, (str, os.PathLike)):
        if y is not None or domains is not None:
            raise TypeError(f"Expected `data` to be {EXPECTED}, got a path with y or domains.")
        return os.fspath(data)
    if y is None or domains is None or not hasattr(data, "__len__"):
        missing = "" if y is not None and domains is not None else " without y and domains"
        raise TypeError(f"Expected `data` to be {EXPECTED}, got {type(data).__name__}{missing}.")
    x = np.ascontiguousarray(data, dtype=np.float32)
    labels, sites = (np.asarray(values).astype(str) for values in (y, domains))
    if x.ndim != 2 or labels.shape != (len(x),) or sites.shape != (len(x),):
        raise UsageError(
            f"Expected X of shape (N, length) with y and domains of shape (N,), got {x.shape}, {labels.shape} and "
            f"{sites.shape}"
        )
    digest = hashlib.sha256(x.tobytes())
    for values in (labels, sites):
        digest.update("\0".join(values.tolist()).encode())
    file = folder / f"vectors-{digest.hexdigest()[:12]}.npz"
    if not file.exists():
        with replacing(file) as temporary, temporary.open("wb") as out:
            np.savez(out, x=x, label=labels, domain=sites)
    return str(file)
