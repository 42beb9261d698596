"""All that is needed to make a split again: names, numbers and a hash, as a small JSON file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, NonNegativeInt, ValidationError

from longshift.array_types import IntArray
from longshift.errors import LongshiftError
from longshift.io import read_json, write_text
from longshift.settings.setting import shot_groups


@dataclass(frozen=True, eq=False)
class SplitRecipe:
    """A split without its samples; arrays are sources x classes."""

    dataset: str
    setting: str
    target: str
    split_seed: int
    classes: tuple[str, ...]
    sources: tuple[str, ...]
    counts: IntArray  # training
    held: IntArray  # for validation
    available: IntArray
    target_available: IntArray  # samples of each class in the target
    many: float
    few: float
    fingerprint: str = ""
    copies_together: bool | None = None  # samples of a group (or copies) are in one part; None: there are no groups
    share: float | None = None  # of the groups of each class and source that validate; such cells count equally

    @property
    def shots(self) -> tuple[str, ...]:
        """The group of each class."""
        return shot_groups(self.counts, self.many, self.few)

    @property
    def unvalidated(self) -> list[tuple[str, str]]:
        """Each source and class that is trained on and has no validation samples, because it is a single group."""
        cells = np.nonzero((self.counts > 0) & (self.held == 0))
        return [(self.sources[d], self.classes[k]) for d, k in zip(*cells, strict=True)]

    @property
    def sizes(self) -> dict[str, int]:
        """How many samples each part has."""
        train, validation = int(self.counts.sum()), int(self.held.sum())
        test = int(self.available.sum()) - train - validation
        return {"train": train, "validation": validation, "test": test, "target": int(self.target_available.sum())}

    def as_json(self) -> dict[str, Any]:
        """A JSON object; the numbers of a source are lists in the order of `classes`."""
        return {
            "format": "longshift-split-1",
            "dataset": self.dataset,
            "setting": self.setting,
            "target": self.target,
            "split_seed": self.split_seed,
            "many": self.many,
            "few": self.few,
            "fingerprint": self.fingerprint,
            **({} if self.copies_together is None else {"copies_together": self.copies_together}),
            **({} if self.share is None else {"share": self.share}),
            "sizes": self.sizes,
            "classes": list(self.classes),
            "sources": {
                source: {
                    "train": self.counts[d].tolist(),
                    "validation": self.held[d].tolist(),
                    "available": self.available[d].tolist(),
                }
                for d, source in enumerate(self.sources)
            },
            "target_available": self.target_available.tolist(),
        }


def write_recipe(recipe: SplitRecipe, path: Path) -> None:
    """Write the file; each list takes one line, so that the file stays readable and a diff says something."""
    document = recipe.as_json()
    sources = document.pop("sources")
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in document.items()]
    rows = [
        f"    {json.dumps(source)}: {{\n"
        + ",\n".join(f"      {json.dumps(key)}: {json.dumps(row)}" for key, row in numbers.items())
        + "\n    }"
        for source, numbers in sources.items()
    ]
    lines.append('  "sources": {\n' + ",\n".join(rows) + "\n  }")
    write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


class _Source(BaseModel):
    train: list[NonNegativeInt]
    validation: list[NonNegativeInt]
    available: list[NonNegativeInt]


class _SplitFile(BaseModel):
    format: Literal["longshift-split-1"]
    dataset: str
    setting: str
    target: str
    split_seed: int
    many: float
    few: float
    fingerprint: str
    copies_together: bool | None = None
    share: float | None = None
    classes: list[str]
    sources: dict[str, _Source]
    target_available: list[NonNegativeInt]


def read_recipe(path: Path) -> SplitRecipe:
    """Read a split file.

    Raises:
        LongshiftError: It is not one, or is damaged.
    """
    try:
        found = _SplitFile.model_validate(read_json(path))
        shape = (len(found.sources), len(found.classes))
        counts, held, available = (
            np.array([getattr(row, part) for row in found.sources.values()], dtype=np.int64).reshape(shape)
            for part in ("train", "validation", "available")
        )
        return SplitRecipe(
            **found.model_dump(exclude={"format", "classes", "sources", "target_available"}),
            classes=tuple(found.classes),
            sources=tuple(found.sources),
            counts=counts,
            held=held,
            available=available,
            target_available=np.array(found.target_available, dtype=np.int64).reshape(shape[1:]),
        )
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3])
        raise LongshiftError(f"{path} is not a split file: {wrong}. Make it with: longshift split make") from error
    except (ValueError, OverflowError) as error:
        raise LongshiftError(f"{path} is damaged: {error}. Make it again with: longshift split make") from error


def is_split_file(path: Path) -> bool:
    """Whether a path is a JSON file (a dataset never is)."""
    return path.suffix.lower() == ".json" and path.is_file()
