"""Counts that the user states: a mapping, a JSON file or a CSV file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, Field, NonNegativeFloat, ValidationError
from pydantic_core import ErrorDetails

from longshift.errors import ConfigError, LongshiftError
from longshift.io import read_json, require_regular
from longshift.settings.setting import Counts, Setting, terciles

COLUMNS = ("domain", "class", "count")
_OPTIONS = ("name", "many", "few", "validation")
MOST = 10**12  # more samples than any dataset has, and sums of them still fit into 64 bits


Count = Annotated[
    int,
    Field(ge=0, le=MOST, strict=True),
    BeforeValidator(lambda value: int(value) if isinstance(value, np.integer) else value),
]


class _OwnCounts(BaseModel):
    counts: dict[str, Annotated[dict[str, Count], Field(min_length=1)]] = Field(min_length=1)
    validation: Count
    many: NonNegativeFloat | None
    few: NonNegativeFloat | None


def _mistake(problem: ErrorDetails) -> str:
    where = ", ".join(str(part) for part in problem["loc"] if part not in ("counts", "[key]"))
    shown = repr(problem["input"])
    return f"{where or 'counts'}: {problem['msg']}, got {shown if len(shown) < 80 else shown[:77] + '...'}"


def explicit_setting(
    counts: Counts,
    target: str,
    validation: int = 5,
    many: float | None = None,
    few: float | None = None,
    name: str = "explicit",
    origin: str = "the counts",
) -> Setting:
    """Make a setting from your own training counts.

    Args:
        counts: Domain -> class -> training samples. The row of the target is left out, so one table serves all targets.
        target: The domain that is held out.
        validation: Validation samples per class and source.
        many: Threshold of the many-shot classes; by default terciles.
        few: Threshold of the few-shot classes; by default terciles.
        name: Name of the setting.
        origin: Where the counts come from, for error messages.

    Returns:
        The setting.

    Raises:
        LongshiftError: If a count is not a whole number of at least 0.

    Example:
        >>> counts = {"north": {"cat": 90, "dog": 10}, "south": {"cat": 10, "dog": 90}, "west": {"cat": 5, "dog": 5}}
        >>> explicit_setting(counts, "west").sources
        ('north', 'south')
    """
    try:
        given = _OwnCounts(counts=counts, validation=validation, many=many, few=few)  # type: ignore[arg-type]
    except ValidationError as error:
        raise ConfigError([_mistake(problem) for problem in error.errors()], origin) from error
    rows = {source: row for source, row in given.counts.items() if source != target}
    if not rows:
        raise ConfigError([f"no source domain besides the target {target!r}"], origin)
    by_size = terciles(Setting(name, target, rows, 0.0, 0.0, given.validation).table())
    return Setting(
        name,
        target,
        rows,
        by_size[0] if given.many is None else given.many,
        by_size[1] if given.few is None else given.few,
        given.validation,
    )


def read_counts(path: Path) -> dict[str, Any]:
    """The arguments for `explicit_setting` that a file holds.

    JSON: `{"photo": {"dog": 100, ...}, ...}`, or that under "counts" next to "validation", "many", "few", "name".
    CSV: the columns domain, class, count.
    """
    if path.suffix.lower() == ".csv":
        return {"counts": _read_csv(path), "name": path.stem, "origin": str(path)}
    document = read_json(path)
    if not isinstance(document, dict):
        raise ConfigError([f"expected an object {{domain: {{class: n}}}}, got {type(document).__name__}"], str(path))
    if "counts" not in document:
        return {"counts": document, "name": path.stem, "origin": str(path)}
    unknown = [key for key in document if key not in ("counts", *_OPTIONS)]
    if unknown:
        raise ConfigError([f"unknown key {key!r}; known: counts, {', '.join(_OPTIONS)}" for key in unknown], str(path))
    return {"name": path.stem, "origin": str(path)} | document


def _read_csv(path: Path) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    mistakes: list[str] = []
    try:
        require_regular(path)
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
            if missing:
                raise ConfigError(
                    [f"no column {column!r}; expected {', '.join(COLUMNS)}" for column in missing], str(path)
                )
            for row in reader:
                domain, label, count = (row[column] or "" for column in COLUMNS)
                if not count.strip().isdecimal() or len(count) > len(str(MOST)):
                    mistakes.append(f"line {reader.line_num}: expected a whole number as count, got {count!r}")
                elif label in counts.setdefault(domain, {}):
                    mistakes.append(f"line {reader.line_num}: {domain}, {label} is there twice")
                else:
                    counts[domain][label] = int(count)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise LongshiftError(f"cannot read {path}: {error}") from error
    if mistakes:
        raise ConfigError(mistakes, str(path))
    return counts
