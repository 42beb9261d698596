"""How a dataset is laid out in folders: which files are images, advice where the levels are wrong, similar names."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from longshift.data.manifest import Manifest
from longshift.text import some

PARTS = frozenset({"train", "training", "val", "valid", "validation", "dev", "test", "testing", "eval", "evaluation"})
ANY_LAYOUT = "or describe any layout in a CSV table with the columns path,label,domain"
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


def wrong_depth(root: Path, images: Sequence[str]) -> str:
    """Advice for a folder without any image at domain/class/image; the most common depth decides."""
    paths = [path.split("/") for path in images]
    depth = Counter(map(len, paths)).most_common(1)[0][0]
    at_depth = [parts for parts in paths if len(parts) == depth]
    if depth == 1:
        return _class_given(root)
    if depth == 2:
        return _site_given(root, sorted({parts[0] for parts in at_depth}))
    return _too_deep(root, at_depth)


def _class_given(root: Path) -> str:
    """The images lie in the folder itself: is it a class of a site?"""
    top = above(above(root))
    if root.is_dir():
        name, site = root.resolve().name, above(root).resolve().name
        others = [folder for folder in _others(top, above(root)) if holds_images(top / folder / name)]
        if others:
            return (
                f"{root} looks like one class ({name}) of one site ({site}): give the folder of all sites, "
                f"{str(top)!r}, which also has {some(others)}"
            )
    return (
        f"the images lie in {root} itself: sort them into a folder for each site and, in it, each class; {ANY_LAYOUT}"
    )


def _site_given(root: Path, names: Sequence[str]) -> str:
    """The images lie one level too high: is the folder one site, and its folders are classes?"""
    others = sites_beside(root, names)
    if others:
        return one_site(root, names, others)
    return (
        f"there is one level of folders too few. If the folders ({some(names)}) are classes, put them into a folder "
        f"for each site (SITE/CLASS/image.jpg); if they are sites, sort the images of each into folders of classes; "
        f"{ANY_LAYOUT}"
    )


def one_site(root: Path, names: Sequence[str], others: Sequence[str]) -> str:
    """The sentence for a folder that is a single site."""
    return (
        f"{root} looks like one site, with the classes {some(names)}: give the folder above it, "
        f"{str(above(root))!r}, which also has {some(others)}"
    )


def _too_deep(root: Path, paths: Sequence[Sequence[str]]) -> str:
    first, last = sorted({parts[0] for parts in paths}), sorted({parts[-2] for parts in paths})
    below = str(root / first[0]) if root.is_dir() else f"{first[0]}, unpacked"
    if PARTS.issuperset(name.lower() for name in first):
        return (
            f"{some(first)} look like parts of a split, not like sites: give one of them ({below}), {ANY_LAYOUT} and, "
            "if you like, split"
        )
    return (
        f"there are too many levels of folders. If the sites are further down, give the folder that holds them (such "
        f"as {below}); if the innermost folders ({some(last, 3)}) are not classes, move their images up; {ANY_LAYOUT}"
    )


def split_names_warning(names: Sequence[str]) -> str:
    """A sentence if domains are called like the parts of a split; else ""."""
    if len(names) < 2 or not PARTS.issuperset(name.lower() for name in names):
        return ""
    return (
        f"{some(names)} look like parts of a split, not like domains: holding one out says nothing about an unseen site"
    )


def no_shared_class_warning(manifest: Manifest) -> str:
    """A sentence if no class is in two domains: they are spelled in several ways, or are likely no domains; else ""."""
    if len(manifest.domain_names) < 2 or bool(((manifest.count_table() > 0).sum(axis=0) > 1).any()):
        return ""
    domains, classes = some(manifest.domain_names), some(manifest.classes, 3)
    said = f"no class is in two of the domains {domains} (classes: {classes})"
    if spellings := _spelled_apart(manifest):
        return f"{said}; some {differing(spellings)}. Spell each class in the same way in all domains"
    if manifest.root is None or not manifest.root.is_dir() or manifest.is_table:
        return f"{said}; are labels and domains mixed up?"
    others = sites_beside(manifest.root, manifest.domain_names)
    if others:
        return f"{said}; {one_site(manifest.root, manifest.domain_names, others)}"
    return (
        f"{said}; if {domains} are classes, then {manifest.root} is one site, and the folders in them are one level "
        "too many: expected domain/class/image.jpg"
    )


def _spelled_apart(manifest: Manifest) -> list[str]:
    """The first classes that are one name in two spellings in two domains, where each class is in one domain only."""
    domain = dict(zip(manifest.classes, manifest.count_table().argmax(axis=0).tolist(), strict=True))
    return next((group for group in similar(manifest.classes) if len({domain[name] for name in group}) > 1), [])


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
