"""How a dataset is laid out in folders: which files are images, advice where the levels are wrong, similar names."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from longshift.data.manifest import Manifest
from longshift.templates import render

PARTS = frozenset({"train", "training", "val", "valid", "validation", "dev", "test", "testing", "eval", "evaluation"})
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".ppm", ".pgm", ".jfif"})
# Pictures, but of formats that are not read: people must know that they are left out.
OTHER_FORMATS = frozenset({
    ".heic", ".heif", ".avif", ".jp2", ".j2k", ".jxl", ".dcm", ".dicom", ".nii", ".svs", ".svg", ".dng", ".cr2", ".nef",
})  # fmt: skip


def is_image(name: str) -> bool:
    """Whether the file's suffix is one of an image, in any case."""
    return os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES


def is_other_format(name: str) -> bool:
    """Whether the file is a picture of a format that is not read, by its suffix."""
    return os.path.splitext(name)[1].lower() in OTHER_FORMATS


def is_hidden(name: str) -> bool:
    """Hidden files and the folder that macOS adds to archives."""
    return name.startswith(".") or name == "__MACOSX"


def similar(names: Iterable[str]) -> list[list[str]]:
    """Groups of names that differ only by case, by spaces, dashes or underscores, or by how an accent is encoded."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[_spaced(name).casefold()].append(name)
    return [group for group in groups.values() if len(group) > 1]


def differing(group: Sequence[str]) -> str:
    """Such as "differ only by case: 'A', 'a'", with the simplest that explains it."""
    if len({name.casefold() for name in group}) == 1:
        by = "case"
    elif len({unicodedata.normalize("NFC", name).casefold() for name in group}) == 1:
        by = "how an accent is encoded"
    else:
        by = "spaces, dashes or underscores"
    return f"differ only by {by}: {', '.join(map(repr, group))}"


def _spaced(name: str) -> str:
    """One way to write what separates words; a dash before a number may be a minus and stays."""
    plain = re.sub(r"(?<=[^\W\d_])-(?=[^\W\d_])", " ", unicodedata.normalize("NFC", name))
    return re.sub(r"[\s_]+", " ", plain).strip()


@dataclass(frozen=True)
class LayoutAdvice:
    """What is likely wrong with the folders of a dataset; the words are in the template `layout`."""

    kind: str
    root: Path | None = None  # the folder that was given
    names: Sequence[str] = ()  # folders that the advice is about
    give: str = ""  # what to give instead
    others: Sequence[str] = ()  # what else is there
    detail: str = ""

    def __str__(self) -> str:
        return render("longshift.data", "layout.txt.j2", advice=self).strip()


def wrong_depth(root: Path, images: Sequence[str]) -> LayoutAdvice:
    """Advice for a folder without any image at domain/class/image; the most common depth decides."""
    paths = [path.split("/") for path in images]
    depth = Counter(map(len, paths)).most_common(1)[0][0]
    at_depth = [parts for parts in paths if len(parts) == depth]
    if depth == 1:  # is the folder a class of a site?
        top, name = above(above(root)), root.resolve().name
        others = [folder for folder in _others(top, above(root)) if holds_images(top / folder / name)]
        if root.is_dir() and others:
            return LayoutAdvice("one class", root, give=str(top), others=others)
        return LayoutAdvice("no folders", root)
    first = sorted({parts[0] for parts in at_depth})
    if depth == 2:
        return _one_site(root, first) or LayoutAdvice("too few levels", root, first)
    below = str(root / first[0]) if root.is_dir() else f"{first[0]}, unpacked"
    if looks_like_split(first):
        return LayoutAdvice("split", root, first, give=below)
    return LayoutAdvice("too many levels", root, sorted({parts[-2] for parts in at_depth}), give=below)


def looks_like_split(names: Sequence[str]) -> bool:
    """Whether folders are called like the parts of a split."""
    return len(names) > 1 and PARTS.issuperset(name.lower() for name in names)


def _one_site(root: Path, classes: Sequence[str]) -> LayoutAdvice | None:
    """Advice if a folder is one site among others."""
    others = sites_beside(root, classes)
    return LayoutAdvice("one site", root, classes, str(above(root)), others) if others else None


def no_shared_class(manifest: Manifest) -> LayoutAdvice | None:
    """Advice if no class is in two domains: they are spelled in several ways, or are likely no domains."""
    if len(manifest.domain_names) < 2 or bool(((manifest.count_table() > 0).sum(axis=0) > 1).any()):
        return None
    domains, domain_of = (
        manifest.domain_names,
        dict(zip(manifest.classes, manifest.count_table().argmax(0), strict=True)),
    )
    for group in similar(manifest.classes):
        if len({domain_of[name] for name in group}) > 1:
            return LayoutAdvice("spellings", detail=differing(group))
    is_table = Path(manifest.given.partition("#")[0]).suffix.lower() in (".csv", ".parquet") or manifest.image_column
    if manifest.root is None or not manifest.root.is_dir() or is_table:
        return LayoutAdvice("mixed up")
    return _one_site(manifest.root, domains) or LayoutAdvice("site of classes", manifest.root, domains)


def sites_beside(root: Path, classes: Collection[str]) -> list[str]:
    """The folders next to `root` that contain some of the same folders, as domains of one dataset do."""
    if not root.is_dir():
        return []
    top = above(root)
    direct = any(holds_images(root / name) for name in classes)  # else sites of another dataset with these names count

    def alike(site: str) -> bool:
        shared = [name for name in folders_in(top / site) if name in classes]
        return any(holds_images(top / site / name) == direct for name in shared)

    return [site for site in _others(top, root) if alike(site)]


def _others(place: Path, but: Path) -> list[str]:
    """The folders in a place that are not `but`, nor links to it."""
    return [name for name in folders_in(place) if (place / name).resolve() != but.resolve()]


def holds_images(place: Path) -> bool:
    """Whether some image lies in a folder itself."""
    try:
        with os.scandir(place) as entries:
            return any(is_image(entry.name) and not is_hidden(entry.name) for entry in entries)
    except OSError:
        return False


def above(root: Path) -> Path:
    """The folder above, spelled as the user spelled `root`."""
    return Path(os.path.normpath(root / os.pardir))


def folders_in(place: Path) -> list[str]:
    """The folders in a folder that are not hidden; none where it cannot be read."""
    try:
        with os.scandir(place) as entries:
            return sorted(entry.name for entry in entries if not is_hidden(entry.name) and entry.is_dir())
    except OSError:
        return []
