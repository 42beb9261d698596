"""Any name that a file system takes comes back unchanged."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from longshift.data import load_dataset
from longshift.data.image_suffixes import is_hidden
from tests.data.trees import zip_tree

Tree = dict[str, dict[str, int]]


def trees(without: str) -> st.SearchStrategy[Tree]:
    """Domains with classes with numbers of images, under any names free of some characters."""
    characters = st.characters(exclude_characters=without, codec="utf-8")
    names = st.text(characters, min_size=1, max_size=40).filter(lambda name: not is_hidden(name))
    names = names.filter(lambda name: len(name.encode()) < 100)
    return st.dictionaries(
        names, st.dictionaries(names, st.integers(1, 3), min_size=1, max_size=3), min_size=1, max_size=3
    )


def make(root: Path, tree: Tree) -> None:
    for domain, classes in tree.items():
        for label, count in classes.items():
            (root / domain / label).mkdir(parents=True)
            for number in range(count):
                (root / domain / label / f"{number} {label}.jpg").touch()


def full(tree: Tree) -> Tree:
    """With zeros for the classes that a domain lacks."""
    labels = sorted({label for classes in tree.values() for label in classes})
    return {domain: {label: tree[domain].get(label, 0) for label in labels} for domain in sorted(tree)}


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trees("/\0"))
def test_folder_names_round_trip(tree: Tree) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        make(Path(temporary), tree)
        manifest = load_dataset(Path(temporary))
        assert manifest.counts() == full(tree)
        assert list(manifest.counts()) == sorted(tree)
        assert all((Path(temporary) / path).is_file() for path in manifest.paths)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trees("/\\:\0"), st.sampled_from(["", "wrap/"]))
def test_zip_names_round_trip(tree: Tree, prefix: str) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        make(Path(temporary) / "data", tree)
        archive = zip_tree(Path(temporary) / "data", Path(temporary) / "data.zip", prefix)
        manifest = load_dataset(archive)
        assert manifest.counts() == full(tree)
        assert manifest.fingerprint() == load_dataset(Path(temporary) / "data").fingerprint()
