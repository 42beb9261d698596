"""A model's record at sites it had not seen, and the warning that follows from it.

`longshift fit` adds the record to model.json, so that it stays with the model. Models of `longshift train` have none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from longshift.errors import LongshiftError
from longshift.io import read_sealed, write_sealed

NO_USE = 1.25  # times the accuracy of guessing: below it a model has learned nothing that carries over
KEY = "unseen_sites"  # in model.json


@dataclass(frozen=True)
class UnseenAccuracy:
    """How models of the same kind did at sites they had not seen."""

    balanced: float  # accuracy averaged over classes, mean over the held-out sites
    sites: int
    classes: int

    def warning(self) -> str:
        """Why the model must not be used; "" if it may be.

        >>> UnseenAccuracy(0.25, 2, 3).warning()
        'At sites it had not seen, it was right for 25% of samples, averaged over classes, no better than guessing \
(33%): do not use this model.'
        >>> UnseenAccuracy(0.9, 2, 3).warning()
        ''
        """
        chance = 1 / self.classes
        if self.balanced >= NO_USE * chance:
            return ""
        # "40%, no better than 33%" would be read as a mistake.
        how = "no" if self.balanced <= chance else "hardly"
        one = self.sites == 1
        return (
            f"At {'a site' if one else 'sites'} it had not seen, it was right for {100 * self.balanced:.0f}% of "
            f"samples, averaged over classes, {how} better than guessing ({100 * chance:.0f}%): do not use this model."
        )


def keep_unseen(path: Path, found: Mapping[str, UnseenAccuracy]) -> None:
    """Add the records of a model's weights ("selected", "averaged") to its model.json, by rename."""
    value = read_sealed(path)
    write_sealed(path, {**value, KEY: {weights: asdict(record) for weights, record in found.items()}})


def read_unseen(path: Path, weights: str = "selected") -> UnseenAccuracy | None:
    """The record in a model.json, None where there is none."""
    records: Any = read_sealed(path).get(KEY, {})
    try:
        if weights not in records:
            return None
        row = records[weights]
        record = UnseenAccuracy(float(row["balanced"]), int(row["sites"]), int(row["classes"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise LongshiftError(f"{path} is damaged: {KEY}: {type(error).__name__} {error}") from error
    if not (math.isfinite(record.balanced) and record.sites > 0 and record.classes > 1):
        raise LongshiftError(f"{path} is damaged: {KEY}: expected an accuracy, sites and two or more classes")
    return record


def unseen_warning(folder: Path, weights: str = "selected") -> str:
    """Why the model in a run's folder must not be used; "" if it may be or has no record."""
    record = read_unseen(folder / "model.json", weights)
    return record.warning() if record else ""
