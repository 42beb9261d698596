"""The counts of a dataset and its problems, before anything is trained on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longshift.array_types import IntArray
from longshift.data import DataProblem, Manifest, looks_like_split, no_shared_class, verify
from longshift.errors import LongshiftError
from longshift.progress import Tick, silent
from longshift.templates import render
from longshift.text import some

FEW = 5  # a class with fewer samples than this at a site is hard to learn there
IMBALANCED = 10.0
UNUSABLE = ("unreadable", "truncated", "zero-byte", "not an image", "decompression bomb")


@dataclass(frozen=True, eq=False)
class DataSummary:
    """The counts of a dataset and its problems."""

    name: str
    noun: str  # "images" or "vectors"
    sites: tuple[str, ...]
    classes: tuple[str, ...]
    counts: IntArray  # sites x classes
    problems: tuple[DataProblem, ...]
    groups: int = 0  # of samples that splits keep together, such as patients
    skipped_levels: tuple[str, ...] = ()  # folders between site and class that are the same everywhere

    @property
    def total(self) -> int:
        """All samples."""
        return int(self.counts.sum())

    @property
    def ratio(self) -> float:
        """Largest class over smallest, over all sites."""
        totals = self.counts.sum(axis=0)
        return float(totals.max() / totals.min())

    @property
    def new_site(self) -> str:
        """Placeholder for the data of a new site in commands."""
        return "NEW_SITE.npz" if self.noun == "vectors" else "NEW_SITE/"

    def missing(self) -> dict[str, list[str]]:
        """Classes that a site does not have."""
        absent = {
            site: [name for name, n in zip(self.classes, row, strict=True) if n == 0]
            for site, row in zip(self.sites, self.counts.tolist(), strict=True)
        }
        return {site: names for site, names in absent.items() if names}

    def alone(self) -> dict[str, str]:
        """Classes that only one site has, and that site."""
        return {
            name: self.sites[int(column.argmax())]
            for name, column in zip(self.classes, self.counts.T, strict=True)
            if (column > 0).sum() == 1
        }

    def of_kind(self, *kinds: str) -> list[DataProblem]:
        """The problems of some kinds."""
        return [problem for problem in self.problems if problem.kind in kinds]

    def rare(self) -> list[tuple[str, str, int]]:
        """Classes with very few samples at a site: class, site, number."""
        few = np.nonzero((self.counts > 0) & (self.counts < FEW))
        return [(self.classes[k], self.sites[d], int(self.counts[d, k])) for d, k in zip(*few, strict=True)]

    def shift(self) -> ClassShift | None:
        """How much class frequencies differ between sites; None for a single site."""
        if len(self.sites) < 2:
            return None
        shares = self.counts / self.counts.sum(axis=1, keepdims=True)
        gaps = np.abs(shares[:, None] - shares[None]).sum(axis=2) / 2
        a, b = np.unravel_index(int(gaps.argmax()), gaps.shape)
        k = int((shares.max(axis=0) - shares.min(axis=0)).round(9).argmax())  # of equal ones the first
        most, least = int(shares[:, k].argmax()), int(shares[:, k].argmin())
        return ClassShift(
            float(gaps[a, b]), (self.sites[a], self.sites[b]), self.classes[k],
            (self.sites[most], float(shares[most, k])), (self.sites[least], float(shares[least, k])),
        )  # fmt: skip

    def statements(self) -> list[str]:
        """The counts in words."""
        totals = self.counts.sum(axis=0)
        return lines(
            "data.txt.j2", data=self, shift=self.shift(), imbalanced=self.ratio >= IMBALANCED,
            by_site=list(zip(self.sites, self.counts.sum(axis=1).tolist(), strict=True)),
            largest=(self.classes[int(totals.argmax())], int(totals.max())),
            smallest=(self.classes[int(totals.argmin())], int(totals.min())),
        )  # fmt: skip

    def warnings(self) -> list[str]:
        """What may harm the model or the estimate."""
        by_kind: dict[str, list[DataProblem]] = {}
        for problem in self.problems:
            by_kind.setdefault(problem.kind, []).append(problem)
        return lines(
            "data_warnings.txt.j2", data=self, found=by_kind, few=FEW, split_names=looks_like_split(self.sites)
        )  # fmt: skip


@dataclass(frozen=True)
class ClassShift:
    """How class frequencies differ between sites."""

    distance: float  # largest total variation distance between two sites
    pair: tuple[str, str]  # these two
    name: str  # the class whose share differs most
    most: tuple[str, float]  # the site where its share is largest, and that share
    least: tuple[str, float]


def summarize_data(manifest: Manifest, tick: Tick = silent) -> DataSummary:
    """Count, and open every image once; raise with a list of the images that cannot be read."""
    noun = "vectors" if manifest.vectors else "images"
    _enough(manifest, noun)
    found = DataSummary(
        manifest.name,
        noun,
        manifest.domain_names,
        manifest.classes,
        manifest.count_table(),
        tuple(verify(manifest, tick)),
        len(set(manifest.groups or ()) - {""}),
        manifest.skipped_levels,
    )
    broken = found.of_kind(*UNUSABLE)
    if broken:
        listed = "\n".join(f"  - {problem.path}: {problem.kind} ({problem.detail})" for problem in broken[:20])
        every = f"longshift data verify {manifest.argument}"
        more = f"\n  ... and {len(broken) - 20} more; list all: {every}" if len(broken) > 20 else ""
        raise LongshiftError(
            f"{len(broken)} of the {len(manifest)} images cannot be read:\n{listed}{more}\n"
            "Remove or repair them, then run the same command again. Nothing was trained yet."
        )
    return found


def _enough(manifest: Manifest, noun: str) -> None:
    """Refuse data whose counts do not allow a fit, before any image is opened."""
    for names, things, needed, hint in (
        (
            manifest.domain_names,
            "sites (domains)",
            "one to train on and one to hold out",
            "If all images come from one place, use cameras, wards or years as sites.",
        ),
        (manifest.classes, "classes", "to tell apart", "The layout is site/class/image.jpg."),
    ):
        if len(names) < 2:
            raise LongshiftError(
                f"Expected at least 2 {things}, {needed}, got {len(names)} ({some(names)}) in {manifest.name}. "
                f"{hint} See what is read: longshift data inspect {manifest.argument}"
            )
    if int(manifest.count_table().max()) < 2:
        raise LongshiftError(
            f"No class has 2 {noun} at one site; training and validation need one each. "
            f"See the counts: longshift data inspect {manifest.argument}"
        )
    apart = no_shared_class(manifest)
    if apart:
        raise LongshiftError(f"No class is at two of the sites (domains) {some(manifest.domain_names)}; {apart}")


def lines(template: str, **values: Any) -> list[str]:
    """The lines of a template of this package; empty ones are left out."""
    text = render("longshift.fitting", template, **values)
    return [line for line in (" ".join(line.split()) for line in text.splitlines()) if line]


def named_lines(template: str, **values: Any) -> list[tuple[str, str]]:
    """Names and values, from lines such as "Network: resnet18"."""
    return [(name, value) for name, _, value in (line.partition(": ") for line in lines(template, **values))]
