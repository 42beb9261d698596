"""What a dataset is like, in numbers and in words, before anything is trained on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longshift.array_types import IntArray
from longshift.data import Manifest, Problem, nothing_shared, parts_of_a_split, verify
from longshift.errors import LongshiftError
from longshift.progress import Tick, silent
from longshift.text import counted, some

FEW = 5  # a class with fewer samples than this at a site is hard to learn there
IMBALANCED = 10.0
UNUSABLE = ("unreadable", "truncated", "zero-byte", "not an image", "decompression bomb")


@dataclass(frozen=True, eq=False)
class Look:
    """The counts of a dataset and what is odd about it."""

    name: str
    noun: str  # "images" or "vectors"
    sites: tuple[str, ...]
    classes: tuple[str, ...]
    counts: IntArray  # sites x classes
    problems: tuple[Problem, ...]

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
        """What stands for the data of a new site in a command."""
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

    def of_kind(self, *kinds: str) -> list[Problem]:
        """The problems of some kinds."""
        return [problem for problem in self.problems if problem.kind in kinds]

    def sentences(self) -> list[str]:
        """What is seen, in plain words."""
        by_site = ", ".join(f"{s} {n}" for s, n in zip(self.sites, self.counts.sum(axis=1).tolist(), strict=True))
        totals = self.counts.sum(axis=0)
        large, small = int(totals.argmax()), int(totals.argmin())
        digits = 0 if self.ratio >= IMBALANCED else 1
        said = [
            f"{self.name} has {self.total} {self.noun} of {len(self.classes)} classes "
            f"from {len(self.sites)} sites ({by_site}).",
            f"The largest class, {self.classes[large]}, has {totals[large]} {self.noun}, the smallest, "
            f"{self.classes[small]}, has {totals[small]}: a ratio of {self.ratio:.{digits}f} to 1"
            + (", which is strongly imbalanced." if self.ratio >= IMBALANCED else ".")
            if totals[large] > totals[small]
            else f"Each class ({some(self.classes)}) has {totals[large]} {self.noun}.",
        ]
        apart = self._frequencies_differ()
        if apart:
            said.append(apart)
        return said

    def warnings(self) -> list[str]:
        """What may spoil the model or the estimate."""
        said = []
        if parts := parts_of_a_split(self.sites):
            said.append(f"The folders {parts}.")
        for site, names in self.missing().items():
            said.append(f"The site {site} has no {self.noun} of {some(names)}.")
        alone = self.alone()
        if alone:
            one = len(alone) == 1
            said.append(
                f"Only one site has the class{'' if one else 'es'} "
                f"{some([f'{name} ({site})' for name, site in alone.items()])}: nothing shows how "
                f"{'it looks' if one else 'they look'} elsewhere, and while that site is held out "
                f"{'it' if one else 'they'} cannot be recognised."
            )
        rare = [
            f"{self.classes[k]} at {self.sites[d]} ({self.counts[d, k]})"
            for d, k in zip(*np.nonzero((self.counts > 0) & (self.counts < FEW)), strict=True)
        ]
        if rare:
            said.append(f"Very few {self.noun} (under {FEW}): {some(rare)}. Their accuracies are rough guesses.")
        twins = self.of_kind("duplicate")
        if twins:
            said.append(
                f"{counted(len(twins), self.noun[:-1])} {'lies' if len(twins) == 1 else 'lie'} at two sites at once "
                f"(for example {twins[0].path}): the estimate for an "
                "unseen site will look better than it is. Remove one of each pair."
            )
        for problem in self.of_kind("similar labels", "similar domains"):
            said.append(f"Is this one name in two spellings? {problem.detail}.")
        misplaced = self.of_kind("misplaced")
        if misplaced:
            one = len(misplaced) == 1
            said.append(
                f"{counted(len(misplaced), 'file')} {'does' if one else 'do'} not lie at site/class/image and "
                f"{'is' if one else 'are'} left out (for example {misplaced[0].path})."
            )
        others = self.of_kind("other format")
        if others:
            said.append(
                f"{counted(len(others), 'picture')} of a format that is not read {'is' if len(others) == 1 else 'are'} "
                f"left out (for example {others[0].path}); convert to JPEG or PNG."
            )
        dark = self.of_kind("dark")
        if dark:
            said.append(
                f"{counted(len(dark), 'image')} {'is' if len(dark) == 1 else 'are'} nearly black "
                f"(for example {dark[0].path}: {dark[0].detail})."
            )
        return said

    def _frequencies_differ(self) -> str:
        """A sentence on label shift: the largest total variation distance between two sites' class frequencies."""
        if len(self.sites) < 2:
            return ""
        shares = self.counts / self.counts.sum(axis=1, keepdims=True)
        gaps = np.abs(shares[:, None] - shares[None]).sum(axis=2) / 2
        a, b = np.unravel_index(int(gaps.argmax()), gaps.shape)
        if gaps[a, b] < 0.2:
            return "Class frequencies are similar at all sites."
        return (
            f"Class frequencies differ between sites: {100 * gaps[a, b]:.0f} % of {self.sites[a]} would have to change "
            f"class to look like {self.sites[b]}."
        )


def look_at(manifest: Manifest, tick: Tick = silent) -> Look:
    """Count, and open every image once; images that cannot be read end the matter with a list of them."""
    noun = "vectors" if manifest.vectors else "images"
    _enough(manifest, noun)
    found = Look(
        manifest.name,
        noun,
        manifest.domain_names,
        manifest.classes,
        manifest.count_table(),
        tuple(verify(manifest, tick)),
    )
    broken = found.of_kind(*UNUSABLE)
    if broken:
        listed = "\n".join(f"  - {problem.path}: {_why(problem)}" for problem in broken[:20])
        every = f"longshift data verify {manifest.argument}"
        more = f"\n  ... and {len(broken) - 20} more; all of them: {every}" if len(broken) > 20 else ""
        raise LongshiftError(
            f"{len(broken)} of the {len(manifest)} images cannot be read:\n{listed}{more}\n"
            "Remove or repair them and run the same command again; nothing was trained yet."
        )
    return found


def _enough(manifest: Manifest, noun: str) -> None:
    """What the counts alone rule out, said before any image is opened."""
    for names, things, needed, hint in (
        (
            manifest.domain_names,
            "sites (domains)",
            "one to learn from and one to hold out",
            "If they all come from one place, cameras, wards or years can stand for sites.",
        ),
        (manifest.classes, "classes", "something to tell apart", "Expected a folder site/class/image.jpg."),
    ):
        if len(names) < 2:
            raise LongshiftError(
                f"a fit needs at least 2 {things}, {needed}; {manifest.name} has {len(names)} ({some(names)}). "
                f"{hint} To see what is read: longshift data inspect {manifest.argument}"
            )
    if int(manifest.count_table().max()) < 2:
        raise LongshiftError(
            f"no class has more than 1 of the {noun} at any site, so nothing is left for validation after training"
        )
    apart = nothing_shared(manifest)
    if apart:
        raise LongshiftError(f"a fit needs classes that several sites (domains) have, but {apart}")


def _why(problem: Problem) -> str:
    """The kind says enough, but for files that cannot be opened."""
    return f"{problem.kind} ({problem.detail})" if problem.kind == "unreadable" else problem.kind
