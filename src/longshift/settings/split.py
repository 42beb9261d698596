"""A split: which samples train, validate, test in distribution, and are the unseen target.

Every choice comes from SHA-256, not from a random generator: within a (domain, class) the samples are ordered
by SHA-256("seed/path"), the first go to validation, the next to training, the rest to the test. The same files
therefore fall into the same part on every machine and with every library version, whatever order they are
listed in; the validation set is the same for all settings, and a larger training set contains the smaller one.
Where groups are given (samples of one patient, copies of one image), all samples of a group go to the same part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from longshift.array_types import IntArray
from longshift.data import Manifest
from longshift.errors import ConfigError, LongshiftError, UsageError, unknown_name
from longshift.settings.lookup import samples_kept_together
from longshift.settings.setting import NO_TARGET, Setting, held_for_validation, reserved_for_test, usable_table
from longshift.settings.split_file import SplitRecipe, read_recipe, write_recipe
from longshift.text import some

PARTS = ("train", "validation", "test", "target")


@dataclass(frozen=True, eq=False, kw_only=True)
class Split(SplitRecipe):
    """Which samples are used for what: indices into a manifest, sorted by domain, class and index.

    Attributes:
        dataset: Name of the dataset.
        setting: Name of the setting.
        target: The domain that is held out.
        split_seed: Seed.
        classes: Names of the classes.
        sources: Names of the source domains, in order.
        train: Indices of the training samples.
        validation: Indices of the validation samples.
        test: Indices of the in-distribution test samples.
        target_indices: Indices of the samples of the target.
        many: Threshold of the many-shot classes.
        few: Threshold of the few-shot classes.
        shots: "many", "medium" or "few" for each class.
        counts: Training samples, sources x classes.
        held: Validation samples, sources x classes.
        available: Samples that training and validation may take, sources x classes.
        target_available: Samples of each class in the target.
        fingerprint: SHA-256 over the names of the files in each part.
        copies_together: Whether samples of a group are in one part; None if no groups were given.
        share: Share of the groups of each class and source that validate, where the setting asks for one.

    Example:
        >>> from longshift.data import load_dataset
        >>> digits = load_dataset("digits")

        >>> from longshift.settings import setting_for
        >>> split = make_split(digits, setting_for(digits, "Duality", "ink"), split_seed=0)
        >>> split.target, len(split.sources), len(split.train) == int(split.counts.sum())
        ('ink', 3, True)
    """

    train: IntArray
    validation: IntArray
    test: IntArray
    target_indices: IntArray

    def part(self, name: str) -> IntArray:
        """The indices of "train", "validation", "test" or "target"."""
        if name not in PARTS:
            raise UsageError(unknown_name("part of a split", name, PARTS))
        result: IntArray = self.target_indices if name == "target" else getattr(self, name)
        return result


def make_split(
    manifest: Manifest,
    setting: Setting,
    split_seed: int = 0,
    shrink: bool = False,
    third: bool = False,
    groups: IntArray | None = None,
) -> Split:
    """Split a dataset as a setting says.

    Args:
        manifest: The dataset.
        setting: The setting, for example from `setting_for`.
        split_seed: Seed. The same seed gives the same files on every machine.
        shrink: Whether to use what is available where the data has too few samples: validation leaves one sample for
            training, training takes what it asks for of the rest, and the test what remains, possibly nothing.
        third: Whether, with `shrink`, validation takes at most a third of a class (but one sample).
        groups: The number of each sample's group (from `samples_kept_together`): all samples of a group go to the same
            part, which may have a few samples fewer than the setting asks for. A group with a sample of the target, or
            with one that the data reserve for the test, goes to the test. None: each sample is on its own.

    Returns:
        The split.

    Raises:
        LongshiftError: If the data has too few samples; the message names the first shortages.

    Example:
        >>> from longshift.data import load_dataset
        >>> from longshift.settings import setting_for
        >>> data = load_dataset("digits")
        >>> split = make_split(data, setting_for(data, "TotalHeavyTail", target="ink"))
        >>> split.sources
        ('chalk', 'neon', 'stamp')
    """
    check_setting(manifest, setting)
    table = usable_table(manifest)
    available = table[[manifest.domain_names.index(source) for source in setting.sources]]
    wanted = setting.table(manifest.classes)
    # A class that a source lacks, and that the setting does not ask of it, needs no validation there.
    held = np.where(available + wanted > 0, held_for_validation(available, setting.validation, shrink and third), 0)
    if shrink:
        held = np.minimum(held, np.maximum(available - 1, 0))
        wanted = np.minimum(wanted, available - held)
    recipe = SplitRecipe(
        dataset=manifest.name,
        setting=setting.name,
        target=setting.target,
        split_seed=split_seed,
        classes=manifest.classes,
        sources=setting.sources,
        counts=wanted,
        held=held,
        available=available,
        target_available=manifest.count_table()[manifest.domain_names.index(setting.target)]
        if setting.target != NO_TARGET
        else np.zeros(len(manifest.classes), dtype=np.int64),
        many=float(setting.many),
        few=float(setting.few),
        share=setting.share,
    )
    if setting.share is not None:  # of groups, whose samples are counted here
        held = _Units.of(manifest, recipe, groups).held(setting.share)
        recipe = replace(recipe, held=held, counts=available - held)
    elif not shrink:
        refuse_shortages(recipe)
    return _assemble(manifest, recipe, groups)


def save_split(split: Split, path: Path | str) -> None:
    """Save a split: its counts and a hash of the chosen files, a few kB for any dataset.

    Args:
        split: The split.
        path: The file to write, JSON.

    Example:
        >>> save_split(split, "split.json")  # doctest: +SKIP
    """
    write_recipe(split, Path(path))


def load_split(path: Path | str, manifest: Manifest, cache: Path | None = None) -> Split:
    """Make a saved split again.

    Args:
        path: A file that `save_split` wrote.
        manifest: The dataset.
        cache: Where hashes of files are kept, by default `$LONGSHIFT_CACHE`.

    Returns:
        The split, with the very same files.

    Raises:
        LongshiftError: If the file is damaged, or the dataset has changed; the message names the changed counts.

    Example:
        >>> split = load_split("split.json", data)  # doctest: +SKIP
    """
    recipe = read_recipe(Path(path))
    differences = list_differences(recipe, manifest)
    if differences:
        shown = "\n".join(f"  - {line}" for line in differences)
        raise LongshiftError(f"the split {path} was made for other data than {manifest.name}:\n{shown}")
    groups = None if recipe.copies_together is None else samples_kept_together(manifest, cache)
    split = _assemble(manifest, recipe, groups)
    if split.fingerprint != recipe.fingerprint:
        raise LongshiftError(
            f"the split {path} was made for other files than {manifest.name} has: the numbers agree, but the file "
            f"names give the hash {split.fingerprint[:12]} and not {recipe.fingerprint[:12]}. "
            "Make it again with: longshift split make"
        )
    return split


def shuffled(names: Sequence[str], seed: int) -> list[int]:
    """Positions ordered by SHA-256 of "seed/name"; equal names (which a dataset should not have) keep their order."""
    keys = [hashlib.sha256(_bytes(f"{seed}/{name}")).digest() for name in names]
    return sorted(range(len(names)), key=keys.__getitem__)


def _assemble(manifest: Manifest, recipe: SplitRecipe, groups: IntArray | None) -> Split:
    units = _Units.of(manifest, recipe, groups)
    parts = units.fill(recipe.held, recipe.counts)
    nothing = np.zeros(0, dtype=np.int64)
    parts["target"] = nothing if recipe.target == NO_TARGET else manifest.indices(recipe.target)
    made = {
        "counts": units.table(parts["train"]),
        "held": units.table(parts["validation"]),
        "fingerprint": _fingerprint(manifest, parts),
        "copies_together": None if groups is None else True,
    }
    return Split(
        **{**vars(recipe), **made},
        train=parts["train"],
        validation=parts["validation"],
        test=parts["test"],
        target_indices=parts["target"],
    )


_Group = tuple[list[int], dict[int, int]]  # indices of the samples of a group, and how many are in each cell


@dataclass(frozen=True, eq=False)
class _Units:
    """What a split deals out: groups of samples of the sources, in the order of their hashes."""

    free: list[_Group]
    reserved: IntArray  # samples that only the test may have
    cells: IntArray  # (N,) source * classes + class; negative outside the sources
    shape: tuple[int, int]

    @classmethod
    def of(cls, manifest: Manifest, recipe: SplitRecipe, groups: IntArray | None) -> _Units:
        place = np.full(len(manifest.domain_names), -1)
        place[[manifest.domain_names.index(source) for source in recipe.sources]] = np.arange(len(recipe.sources))
        rows, shape = place[manifest.domains], (len(recipe.sources), len(manifest.classes))
        groups = np.arange(len(manifest)) if groups is None else groups
        outside = reserved_for_test(manifest)
        if recipe.target != NO_TARGET:
            outside |= manifest.domains == manifest.domain_names.index(recipe.target)
        outside = np.isin(groups, groups[outside])  # with a sample of a group, the whole group
        cells = np.where(rows < 0, -1, rows * shape[1] + manifest.labels)
        indices = np.flatnonzero((rows >= 0) & ~outside)
        order = indices[shuffled([manifest.paths[i] for i in indices], recipe.split_seed)]
        free: dict[int, _Group] = {}
        for i, group, cell in zip(order.tolist(), groups[order].tolist(), cells[order].tolist(), strict=True):
            unit, sizes = free.setdefault(group, ([], {}))
            unit.append(i)
            sizes[cell] = sizes.get(cell, 0) + 1
        return cls(list(free.values()), np.flatnonzero((rows >= 0) & outside), cells, shape)

    def table(self, indices: IntArray) -> IntArray:
        """How many of the samples each source and class has."""
        return np.bincount(self.cells[indices], minlength=self.shape[0] * self.shape[1]).reshape(self.shape)

    def held(self, share: float) -> IntArray:
        """Validation samples of each source and class, where they are a share of its groups."""
        once = [(unit, dict.fromkeys(sizes, 1)) for unit, sizes in self.free]
        taken, _ = _take(once, held_for_validation(self._groups(), share, third=False))
        return self.table(np.array(taken, dtype=np.int64))

    def fill(self, held: IntArray, counts: IntArray) -> dict[str, IntArray]:
        """Each group goes to validation if it fits there, else to training, else to the test.

        A cell (source and class) with a single group only trains.
        """
        validation, left = _take(self.free, np.where(self._groups() > 1, held, 0))
        train, left = _take(left, counts)
        test = [*self.reserved.tolist(), *(i for unit, _ in left for i in unit)]
        found = {"train": train, "validation": validation, "test": test}
        return {part: self._ordered(np.array(indices, dtype=np.int64)) for part, indices in found.items()}

    def _groups(self) -> IntArray:
        """How many groups each source and class has."""
        touched = [cell for _, sizes in self.free for cell in sizes]
        return np.bincount(touched, minlength=self.shape[0] * self.shape[1]).reshape(self.shape)

    def _ordered(self, indices: IntArray) -> IntArray:
        """By source, class and index."""
        return indices[np.lexsort((indices, self.cells[indices]))]


def _take(groups: list[_Group], room: IntArray) -> tuple[list[int], list[_Group]]:
    """The samples of the groups that fit, in their order, and the other groups.

    A group fits if no cell gets more samples than its room, which is at least the size of its smallest group.
    """
    smallest: dict[int, int] = {}
    for _, sizes in groups:
        for cell, n in sizes.items():
            smallest[cell] = min(n, smallest.get(cell, n))
    free = [max(n, smallest.get(cell, 0)) if n else 0 for cell, n in enumerate(room.ravel().tolist())]
    taken: list[int] = []
    left: list[_Group] = []
    for unit, sizes in groups:
        if all(n <= free[cell] for cell, n in sizes.items()):
            taken.extend(unit)
            for cell, n in sizes.items():
                free[cell] -= n
        else:
            left.append((unit, sizes))
    return taken, left


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # any str that Python can hold


def _fingerprint(manifest: Manifest, parts: dict[str, IntArray]) -> str:
    digest = hashlib.sha256()
    for part in PARTS:
        rows = sorted(
            _bytes(f"{manifest.domain_names[manifest.domains[i]]}\0{manifest.classes[manifest.labels[i]]}\0")
            + _bytes(manifest.paths[i])
            for i in parts[part]
        )
        digest.update(part.encode() + b"\0" + b"\0".join(rows) + b"\n")
    return digest.hexdigest()


def check_setting(manifest: Manifest, setting: Setting) -> None:
    """Raise for a setting whose names or numbers do not fit the dataset."""
    held_out = setting.target != NO_TARGET
    for noun, number, least, needed in (
        ("domains", len(manifest.domain_names), 1 + held_out, "2 domains (1 source and the target)"),
        ("classes", len(manifest.classes), 2, "2 classes"),
    ):
        if number < least:
            raise LongshiftError(
                f"a split needs at least {needed}, but {manifest.name} has {number}; "
                f"see its {noun} with: longshift data inspect"
            )
    mistakes = [
        unknown_name(f"domain of {manifest.name}", domain, manifest.domain_names)
        for domain in (setting.target, *setting.sources)
        if domain not in manifest.domain_names and domain != NO_TARGET
    ]
    mistakes += [
        unknown_name(f"class of {manifest.name}", name, manifest.classes)
        for name in setting.classes
        if name not in manifest.classes
    ]
    if not setting.sources:
        mistakes.append("no source domain is named; a split needs at least 1")
    if setting.target in setting.sources:
        mistakes.append(f"{setting.target} is the target and cannot be a source as well")
    if setting.share is not None and setting.name != "Natural":
        mistakes.append(f"validation: expected a number of samples (a share is for Natural), got {setting.validation}")
    if mistakes:
        raise ConfigError(mistakes, f"the setting {setting.name}")


def refuse_shortages(recipe: SplitRecipe) -> None:
    """Raise if the dataset has fewer samples than the split asks for."""
    # One sample at least must stay for the in-distribution test of a class that is there.
    asked = recipe.counts + recipe.held
    one = "" if recipe.target == NO_TARGET else " + 1 test"
    asked = asked + (asked > 0) if one else asked
    short = [
        f"{recipe.sources[d]}/{recipe.classes[k]} (has {recipe.available[d, k]}, needs {asked[d, k]} = "
        f"{recipe.counts[d, k]} training + {recipe.held[d, k]} validation{one})"
        for d, k in zip(*np.nonzero(asked > recipe.available), strict=True)
    ]
    if short:
        raise LongshiftError(
            f"{recipe.dataset} has too few samples for {len(short)} of the {recipe.counts.size} counts of "
            f"{recipe.setting} with target {recipe.target}: {some(short, limit=3)}. "
            "Add --shrink (shrink = true) to use fewer samples, or request fewer."
        )


def list_differences(recipe: SplitRecipe, manifest: Manifest) -> list[str]:
    """How a manifest differs from the one that a recipe was made for, in names and numbers."""
    if recipe.classes != manifest.classes:
        lost = [name for name in recipe.classes if name not in manifest.classes]
        new = [name for name in manifest.classes if name not in recipe.classes]
        return [
            f"expected the {len(recipe.classes)} classes of the split, got {len(manifest.classes)}; "
            f"missing: {', '.join(lost) or 'none'}; new: {', '.join(new) or 'none'}"
        ]
    named = (*recipe.sources, recipe.target) if recipe.target != NO_TARGET else recipe.sources
    absent = [name for name in named if name not in manifest.domain_names]
    if absent:
        return [f"no domain {name!r}; it has {', '.join(manifest.domain_names)}" for name in absent]
    usable, whole = usable_table(manifest), manifest.count_table()
    expected = list(zip(named, [*recipe.available, recipe.target_available], strict=False))
    return [
        f"{domain}, {name}: expected {row[k]} samples, got {found}"
        for domain, row in expected
        for k, name in enumerate(recipe.classes)
        if (found := (whole if domain == recipe.target else usable)[manifest.domain_names.index(domain), k]) != row[k]
    ]
