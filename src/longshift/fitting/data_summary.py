"""Counts, sentences and warnings about a dataset, before anything is trained on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longshift.array_types import IntArray
from longshift.data import DataProblem, Manifest, no_shared_class_warning, split_names_warning, verify
from longshift.errors import LongshiftError
from longshift.progress import Tick, silent
from longshift.text import agree, counted, some

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
    layout: str = ""  # a sentence on folders that are skipped

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

    def sentences(self) -> list[str]:
        """The counts in plain words."""
        by_site = ", ".join(f"{s} {n}" for s, n in zip(self.sites, self.counts.sum(axis=1).tolist(), strict=True))
        totals = self.counts.sum(axis=0)
        large, small = int(totals.argmax()), int(totals.argmin())
        digits = 0 if self.ratio >= IMBALANCED else 1
        sentences = [
            f"{self.name} has {self.total} {self.noun} of {len(self.classes)} classes "
            f"from {len(self.sites)} sites ({by_site}).",
            f"The largest class, {self.classes[large]}, has {totals[large]} {self.noun}, the smallest, "
            f"{self.classes[small]}, has {totals[small]}: a ratio of {self.ratio:.{digits}f} to 1"
            + (", which is strongly imbalanced." if self.ratio >= IMBALANCED else ".")
            if totals[large] > totals[small]
            else f"Each class ({some(self.classes)}) has {totals[large]} {self.noun}.",
        ]
        return [text for text in (*sentences, self._frequencies_differ(), self.layout) if text]

    def warnings(self) -> list[str]:
        """What may harm the model or the estimate."""
        found = []
        if parts := split_names_warning(self.sites):
            found.append(f"The folders {parts}.")
        for site, names in self.missing().items():
            found.append(f"The site {site} has no {self.noun} of {some(names)}.")
        alone = self.alone()
        if alone:
            one = len(alone) == 1
            found.append(
                f"Only one site has the class{'' if one else 'es'} "
                f"{some([f'{name} ({site})' for name, site in alone.items()])}. While that site is held out, "
                f"{'it' if one else 'they'} cannot be learned."
            )
        rare = [
            f"{self.classes[k]} at {self.sites[d]} ({self.counts[d, k]})"
            for d, k in zip(*np.nonzero((self.counts > 0) & (self.counts < FEW)), strict=True)
        ]
        if rare:
            found.append(f"Very few {self.noun} (under {FEW}): {some(rare)}. Their accuracies are uncertain.")
        twins = self.of_kind("duplicate")
        if twins:
            found.append(
                f"{counted(len(twins), self.noun[:-1])} {agree(len(twins), 'is', 'are')} the same at two sites "
                f"(for example {twins[0].path}), which makes the estimate for a new site too optimistic. Remove one "
                "of each pair."
            )
        copies = self.of_kind("copy")
        if copies:
            are = agree(len(copies), "is a copy", "are copies")
            found.append(
                f"{counted(len(copies), self.noun[:-1])} {are} of another at the same site (for example "
                f"{copies[0].path}). Copies stay together, in training or in validation, unless a class has too few "
                "other samples at the site; they count more than once. Remove them."
            )
        double = self.of_kind("two labels")
        if double:
            found.append(
                f"{counted(len(double), self.noun[:-1])} {agree(len(double), 'has', 'have')} the same content as "
                f"another with a different label (for example {double[0].path}: {double[0].detail}). Correct the "
                "labels."
            )
        for problem in self.of_kind("similar labels", "similar domains"):
            found.append(f"Two spellings of one name? {problem.detail}.")
        misplaced = self.of_kind("misplaced")
        if misplaced:
            one = len(misplaced) == 1
            found.append(
                f"{counted(len(misplaced), 'file')} {'is' if one else 'are'} not at site/class/image and "
                f"{'is' if one else 'are'} left out (for example {misplaced[0].path})."
            )
        others = self.of_kind("other format")
        if others:
            found.append(
                f"{counted(len(others), 'picture')} in an unsupported format {agree(len(others), 'is', 'are')} "
                f"left out (for example {others[0].path}). Convert to JPEG or PNG."
            )
        dark = self.of_kind("dark")
        if dark:
            found.append(
                f"{counted(len(dark), 'image')} {agree(len(dark), 'is', 'are')} nearly black "
                f"(for example {dark[0].path}: {dark[0].detail})."
            )
        return found

    def _frequencies_differ(self) -> str:
        """A sentence on label shift, by the largest total variation distance between two sites."""
        if len(self.sites) < 2:
            return ""
        shares = self.counts / self.counts.sum(axis=1, keepdims=True)
        gaps = np.abs(shares[:, None] - shares[None]).sum(axis=2) / 2
        a, b = np.unravel_index(int(gaps.argmax()), gaps.shape)
        if gaps[a, b] < 0.2:
            spread = shares.max(axis=0) - shares.min(axis=0)
            k = int(spread.round(9).argmax())  # of equal ones the first, whatever rounding does
            high, low = (f"{100 * share:.0f}%" for share in (shares[:, k].max(), shares[:, k].min()))
            if high == low:
                return "Class frequencies differ by less than 1 point between sites."
            most, least = self.sites[int(shares[:, k].argmax())], self.sites[int(shares[:, k].argmin())]
            return (
                "Class frequencies are similar at all sites; the largest difference is that of "
                f"{self.classes[k]}: {high} at {most}, {low} at {least}."
            )
        return (
            f"Class frequencies differ between sites: {100 * gaps[a, b]:.0f}% of the {self.noun} of {self.sites[a]} "
            f"would have to change class to match {self.sites[b]}."
        )


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
        manifest.layout,
    )
    broken = found.of_kind(*UNUSABLE)
    if broken:
        listed = "\n".join(f"  - {problem.path}: {_why(problem)}" for problem in broken[:20])
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
            f"Expected 2 or more {noun} of some class at one site, for training and for validation, got at most 1. "
            f"See the counts: longshift data inspect {manifest.argument}"
        )
    apart = no_shared_class_warning(manifest)
    if apart:
        raise LongshiftError(f"Expected classes that several sites (domains) have, but {apart}")


def _why(problem: DataProblem) -> str:
    """The kind of problem; for files that cannot be opened, also the reason."""
    return f"{problem.kind} ({problem.detail})" if problem.kind == "unreadable" else problem.kind
