"""All that is needed to make a split again: names, numbers and a hash, as a small JSON file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from longshift.array_types import IntArray
from longshift.errors import LongshiftError
from longshift.io import read_json, write_text
from longshift.settings.shots import shot_groups

FORMAT = "longshift-split-1"


class DamagedRecipe(LongshiftError):
    """A file that is not a split, or a damaged one."""


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
    validation: IntArray
    available: IntArray
    target_available: IntArray  # samples of each class in the target
    many: float
    few: float
    fingerprint: str = ""
    copies_together: bool | None = None  # samples with the same content are in one part; None: not looked for

    @property
    def shots(self) -> tuple[str, ...]:
        """The group of each class."""
        return shot_groups(self.counts, self.many, self.few)

    @property
    def sizes(self) -> dict[str, int]:
        """How many samples each part has."""
        train, validation = int(self.counts.sum()), int(self.validation.sum())
        test = int(self.available.sum()) - train - validation
        return {"train": train, "validation": validation, "test": test, "target": int(self.target_available.sum())}

    def as_json(self) -> dict[str, Any]:
        """A JSON object; the numbers of a source are lists in the order of `classes`."""
        return {
            "format": FORMAT,
            "dataset": self.dataset,
            "setting": self.setting,
            "target": self.target,
            "split_seed": self.split_seed,
            "many": self.many,
            "few": self.few,
            "fingerprint": self.fingerprint,
            **({} if self.copies_together is None else {"copies_together": self.copies_together}),
            "sizes": self.sizes,
            "classes": list(self.classes),
            "sources": {
                source: {
                    "train": self.counts[d].tolist(),
                    "validation": self.validation[d].tolist(),
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


def read_recipe(path: Path) -> SplitRecipe:
    """Read a split file; one that is not is named with what is wrong."""
    try:
        document = read_json(path)
    except LongshiftError as error:
        raise DamagedRecipe(str(error)) from error
    found = document.get("format") if isinstance(document, dict) else None
    if found != FORMAT:
        raise DamagedRecipe(f"{path} is not a split file: expected the format {FORMAT!r}, got {found!r}")
    try:
        sources: dict[str, dict[str, list[int]]] = document["sources"]
        classes = tuple(document["classes"])
        _texts(*classes, *(document[key] for key in ("dataset", "setting", "target", "fingerprint")))
        shape = (len(sources), len(classes))
        arrays = {
            key: _numbers(key, [numbers[key] for numbers in sources.values()], shape)
            for key in ("train", "validation", "available")
        }
        return SplitRecipe(
            dataset=document["dataset"],
            setting=document["setting"],
            target=document["target"],
            split_seed=int(document["split_seed"]),
            classes=classes,
            sources=tuple(sources),
            counts=arrays["train"],
            validation=arrays["validation"],
            available=arrays["available"],
            target_available=_numbers("target_available", document["target_available"], shape[1:]),
            many=float(document["many"]),
            few=float(document["few"]),
            fingerprint=document["fingerprint"],
            copies_together=_yes_no(document.get("copies_together")),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DamagedRecipe(
            f"{path} is damaged: {type(error).__name__} {error}. Make it again with: longshift split make"
        ) from error


def _texts(*values: object) -> None:
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"expected a name, got {value!r}")


def _yes_no(value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise TypeError(f"copies_together: expected true or false, got {value!r}")


def _numbers(name: str, values: object, shape: tuple[int, ...]) -> IntArray:
    found: IntArray = np.array(values, dtype=np.int64)
    if found.shape != shape or (found < 0).any():
        raise ValueError(f"{name}: expected {' x '.join(map(str, shape))} numbers of samples, got {str(values)[:80]}")
    return found


def is_split_file(path: Path) -> bool:
    """Whether a path is a JSON file (a dataset never is)."""
    return path.suffix.lower() == ".json" and path.is_file()
