"""A split: which samples train, validate, test in distribution, and are the unseen target.

Every choice comes from SHA-256, not from a random generator: within a (domain, class) the samples are ordered
by SHA-256(seed, path), the first go to validation, the next to training, the rest to the test. The same files
therefore fall into the same part on every machine and with every library version, whatever order they are
listed in; the validation set is the same for all settings, and a larger training set contains the smaller one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from longshift.data.manifest import IntArray, Manifest
from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.settings.setting import Setting
from longshift.settings.shots import shot_groups

PARTS = ("train", "validation", "test", "target")


@dataclass(frozen=True, eq=False)
class Split:
    """Indices into a manifest, each sorted by domain (in the order of `sources`), class and index."""

    dataset: str
    setting: str
    target: str
    split_seed: int
    classes: tuple[str, ...]
    sources: tuple[str, ...]
    train: IntArray
    validation: IntArray
    test: IntArray
    target_indices: IntArray
    many: float
    few: float
    shots: tuple[str, ...]  # per class: "many", "medium" or "few"
    counts: IntArray  # training samples, sources x classes
    validation_counts: IntArray  # validation samples, sources x classes
    fingerprint: str  # SHA-256 over the names of the files in each part

    def part(self, name: str) -> IntArray:
        """The indices of "train", "validation", "test" or "target"."""
        if name not in PARTS:
            raise UsageError(unknown_name("part of a split", name, PARTS))
        result: IntArray = self.target_indices if name == "target" else getattr(self, name)
        return result


def make_split(manifest: Manifest, setting: Setting, split_seed: int = 0, shrink: bool = False) -> Split:
    """Split `manifest` as `setting` says.

    Counts that cannot be met are an error that lists all of them, unless `shrink` is set: then validation takes
    up to its size but leaves one sample for training, training takes what it asks for of the rest, and the test
    whatever remains, possibly nothing.
    """
    sources = _check(manifest, setting)
    available = manifest.count_table()[[manifest.domain_names.index(s) for s in sources]]
    wanted = setting.table(manifest.classes)
    held = np.where(available + wanted > 0, setting.validation, 0)
    if shrink:
        held = np.minimum(held, np.maximum(available - 1, 0))
        wanted = np.minimum(wanted, available - held)
    else:
        _refuse_shortages(manifest, sources, wanted, held, available)
    return assemble(
        manifest, setting.name, setting.target, sources, wanted, held, setting.many, setting.few, split_seed
    )


def assemble(
    manifest: Manifest,
    setting: str,
    target: str,
    sources: Sequence[str],
    counts: IntArray,
    held: IntArray,
    many: float,
    few: float,
    split_seed: int,
) -> Split:
    """The split with exactly these training and validation counts (sources x classes), which must fit."""
    parts: dict[str, list[IntArray]] = {part: [] for part in PARTS}
    for row, source in enumerate(sources):
        for column, indices in enumerate(_by_class(manifest, source)):
            order = indices[shuffled([manifest.paths[i] for i in indices], split_seed)]
            first = int(held[row, column])
            second = first + int(counts[row, column])
            for part, chosen in (
                ("validation", order[:first]),
                ("train", order[first:second]),
                ("test", order[second:]),
            ):
                parts[part].append(np.sort(chosen))
    parts["target"] = _by_class(manifest, target)
    joined = {part: np.concatenate(pieces) for part, pieces in parts.items()}
    return Split(
        dataset=manifest.name,
        setting=setting,
        target=target,
        split_seed=split_seed,
        classes=manifest.classes,
        sources=tuple(sources),
        train=joined["train"],
        validation=joined["validation"],
        test=joined["test"],
        target_indices=joined["target"],
        many=float(many),
        few=float(few),
        shots=shot_groups(counts, many, few),
        counts=counts.astype(np.int64),
        validation_counts=held.astype(np.int64),
        fingerprint=_fingerprint(manifest, joined),
    )


def shuffled(names: Sequence[str], seed: int) -> list[int]:
    """Positions ordered by SHA-256 of "seed/name"; equal names (which a dataset should not have) keep their order."""
    keys = [hashlib.sha256(_bytes(f"{seed}/{name}")).digest() for name in names]
    return sorted(range(len(names)), key=lambda i: (keys[i], i))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")  # names on disk need not be UTF-8


def _by_class(manifest: Manifest, domain: str) -> list[IntArray]:
    """The indices of each class of a domain."""
    indices = manifest.indices(domain)
    labels = manifest.labels[indices]
    ends = np.cumsum(np.bincount(labels, minlength=len(manifest.classes)))[:-1]
    return np.split(indices[np.argsort(labels, kind="stable")], ends)


def _fingerprint(manifest: Manifest, parts: dict[str, IntArray]) -> str:
    digest = hashlib.sha256()
    for part in PARTS:
        rows = sorted(
            _bytes(
                f"{manifest.domain_names[manifest.domains[i]]}\0{manifest.classes[manifest.labels[i]]}\0{manifest.paths[i]}"
            )
            for i in parts[part]
        )
        digest.update(part.encode() + b"\0" + b"\0".join(rows) + b"\n")
    return digest.hexdigest()


def _check(manifest: Manifest, setting: Setting) -> tuple[str, ...]:
    """Names and sizes; returns the sources."""
    if len(manifest.domain_names) < 2:
        raise LongshiftError(
            f"a split needs at least 2 domains (1 source and the target), but {manifest.name} has "
            f"{len(manifest.domain_names)}; see: longshift data inspect"
        )
    if len(manifest.classes) < 2:
        raise LongshiftError(
            f"a split needs at least 2 classes, but {manifest.name} has {len(manifest.classes)}; "
            "see: longshift data inspect"
        )
    for domain in (setting.target, *setting.sources):
        if domain not in manifest.domain_names:
            raise UsageError(unknown_name(f"domain of {manifest.name}", domain, manifest.domain_names))
    if not setting.sources:
        raise UsageError(f"the setting {setting.name} names no source domain; a split needs at least 1")
    if setting.target in setting.sources:
        raise UsageError(f"{setting.target} is the target and cannot be a source as well")
    for name in setting.classes:
        if name not in manifest.classes:
            raise UsageError(unknown_name(f"class of {manifest.name}", name, manifest.classes))
    if (setting.table() < 0).any() or setting.validation < 0:
        raise UsageError(f"the setting {setting.name} asks for a negative number of samples")
    return setting.sources


def _refuse_shortages(
    manifest: Manifest, sources: Iterable[str], wanted: IntArray, held: IntArray, available: IntArray
) -> None:
    # One sample at least must stay for the in-distribution test of a class that is there.
    missing = wanted + held + (wanted + held > 0) - available
    lines = [
        f"  - {source}, {name}: {wanted[d, k]} training + {held[d, k]} validation + 1 test = "
        f"{wanted[d, k] + held[d, k] + 1}, but there are {available[d, k]}: {missing[d, k]} too few"
        for d, source in enumerate(sources)
        for k, name in enumerate(manifest.classes)
        if missing[d, k] > 0
    ]
    if lines:
        noun = "count" if len(lines) == 1 else "counts"
        raise LongshiftError(
            f"{manifest.name} has too few samples for {len(lines)} {noun} of this setting:\n"
            + "\n".join(lines)
            + "\nAdd --shrink (shrink=True) to take what is there, or choose smaller counts."
        )
