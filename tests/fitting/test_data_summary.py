"""What a fit says about the data before it trains."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from longshift.data import load_dataset
from longshift.errors import LongshiftError
from longshift.fitting import fit
from longshift.fitting.data_summary import DataSummary, summarize_data
from tests.fitting.colored_sites import QUICK, sites


def test_what_it_says_of_the_data(tmp_path: Path) -> None:
    counts = {
        "a": {"red": 40, "green <b>": 2},
        "b": {"red": 5, "green <b>": 30, "blue|x": 6},
        "A": {"red": 9, "green <b>": 9},
    }
    root = sites(tmp_path / "d", counts)
    shutil.copy(root / "a" / "red" / "0.png", root / "b" / "red" / "twin.png")
    look = summarize_data(load_dataset(root))
    text = " ".join([*look.sentences(), *look.warnings()])
    assert look.ratio == pytest.approx(55 / 6)
    assert "102 images of 3 classes from 3 sites (A 18, a 42, b 42)" in text
    assert "The site a has no images of blue|x." in text
    assert "Only one site has the class blue|x (b). While that site is held out, it cannot be learned" in text
    assert "a ratio of 9.2 to 1." in text
    assert "green <b> at a (2)" in text
    assert "1 image is the same at two sites (for example b/red/twin.png)" in text
    assert "Two spellings of one name? differ only by case: 'A', 'a'" in text
    # a: 40/42 red; b: 6/42 red, so 34/42 of a would have to change class
    assert "81% of the images of a would have to change class to match b" in text


@pytest.mark.parametrize(
    ("north", "south", "words"),
    [
        (
            (31, 69),
            (19, 81),
            "are similar at all sites; the largest difference is that of cat: 31% at north, 19% at south.",
        ),
        ((3, 7), (30, 70), "differ by less than 1 point between sites."),
    ],
)
def test_similar_class_frequencies_name_the_largest_difference(
    north: tuple[int, int], south: tuple[int, int], words: str
) -> None:
    look = DataSummary("d", "images", ("north", "south"), ("cat", "dog"), np.array([north, south]), ())
    assert f"Class frequencies {words}" in look.sentences()


def test_pictures_that_are_left_out_or_nearly_black(tmp_path: Path) -> None:
    root = sites(tmp_path / "d", {"a": {"red": 3, "green <b>": 3}, "b": {"red": 3, "green <b>": 3}})
    Image.fromarray(np.full((9, 9), 4000, np.uint16)).save(root / "a" / "red" / "scan.png")
    (root / "b" / "red" / "phone.heic").write_bytes(b"x")
    text = " ".join(summarize_data(load_dataset(root)).warnings())
    assert "1 picture in an unsupported format is left out (for example b/red/phone.heic)" in text
    assert "1 image is nearly black (for example a/red/scan.png: 16-bit values up to 4000 of 65535" in text


def test_data_that_cannot_be_fitted(tmp_path: Path) -> None:
    one = sites(tmp_path / "one", {"a": {"red": 3, "green <b>": 3}})
    (one / "a" / "red" / "1.png").write_bytes(b"")  # not opened: the counts alone rule it out
    with pytest.raises(LongshiftError, match=r"at least 2 sites .* got 1 \(a\).*cameras, wards or years"):
        summarize_data(load_dataset(one))
    (tmp_path / "m.csv").write_text("path,label,domain\n1.png,x,one\n2.png,y,one\n")
    with pytest.raises(LongshiftError, match=rf"longshift data inspect {tmp_path / 'm.csv'}$"):
        summarize_data(load_dataset(tmp_path / "m.csv"))
    apart = sites(tmp_path / "apart", {"a": {"red": 3}, "b": {"green <b>": 3}})
    with pytest.raises(LongshiftError, match=r"Expected classes that several sites .* but no class is in two of"):
        summarize_data(load_dataset(apart))
    single = sites(tmp_path / "single", {"a": {"red": 1, "green <b>": 1}, "b": {"red": 1, "green <b>": 1}})
    with pytest.raises(LongshiftError, match="Expected 2 or more images of some class at one site"):
        summarize_data(load_dataset(single))
    broken = sites(tmp_path / "broken", {"a": {"red": 3, "green <b>": 3}, "b": {"red": 3, "green <b>": 3}})
    (broken / "b" / "red" / "1.png").write_bytes(b"")
    with pytest.raises(LongshiftError, match=r"1 of the 12 images cannot be read:\n  - b/red/1.png: zero-byte"):
        fit(broken, out=tmp_path / "fit", **QUICK)
