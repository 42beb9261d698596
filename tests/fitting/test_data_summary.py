"""What a fit finds in the data before it trains."""

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
from tests.fitting.hand_made import data
from tests.golden import check_golden


def test_what_it_says_of_the_data() -> None:
    even = data(counts=np.array([[30, 60, 9], [30, 60, 9], [31, 60, 9]]), problems=())
    shown = [*data().statements(), *data().warnings(), *even.statements()]
    check_golden("data-summary.txt", "\n".join(shown) + "\n")


def test_counts_and_problems(tmp_path: Path) -> None:
    counts = {
        "a": {"red": 40, "green <b>": 2},
        "b": {"red": 5, "green <b>": 30, "blue|x": 6},
        "A": {"red": 9, "green <b>": 9},
    }
    root = sites(tmp_path / "d", counts)
    shutil.copy(root / "a" / "red" / "0.png", root / "b" / "red" / "twin.png")
    Image.fromarray(np.full((9, 9), 4000, np.uint16)).save(root / "a" / "red" / "scan.png")
    (root / "b" / "red" / "phone.heic").write_bytes(b"x")
    look = summarize_data(load_dataset(root))
    assert look.ratio == pytest.approx(56 / 6)
    assert look.missing() == {"A": ["blue|x"], "a": ["blue|x"]}
    assert look.alone() == {"blue|x": "b"}
    assert look.rare() == [("green <b>", "a", 2)]
    assert {problem.kind for problem in look.problems} >= {"duplicate", "similar domains", "dark", "other format"}


def test_class_frequencies_of_two_sites() -> None:
    found = DataSummary("d", "images", ("n", "s"), ("cat", "dog"), np.array([[31, 69], [19, 81]]), ()).shift()
    assert found is not None
    assert found.distance == pytest.approx(0.12)
    assert (found.name, found.most, found.least) == ("cat", ("n", 0.31), ("s", 0.19))


def test_data_that_cannot_be_fitted(tmp_path: Path) -> None:
    one = sites(tmp_path / "one", {"a": {"red": 3, "green <b>": 3}})
    (one / "a" / "red" / "1.png").write_bytes(b"")  # not opened: the counts alone rule it out
    with pytest.raises(LongshiftError, match="sites"):
        summarize_data(load_dataset(one))
    apart = sites(tmp_path / "apart", {"a": {"red": 3}, "b": {"green <b>": 3}})
    with pytest.raises(LongshiftError, match="classes"):
        summarize_data(load_dataset(apart))
    single = sites(tmp_path / "single", {"a": {"red": 1, "green <b>": 1}, "b": {"red": 1, "green <b>": 1}})
    with pytest.raises(LongshiftError, match="validation"):
        summarize_data(load_dataset(single))
    broken = sites(tmp_path / "broken", {"a": {"red": 3, "green <b>": 3}, "b": {"red": 3, "green <b>": 3}})
    (broken / "b" / "red" / "1.png").write_bytes(b"")
    with pytest.raises(LongshiftError, match=r"b/red/1.png: zero-byte"):
        fit(broken, out=tmp_path / "fit", **QUICK)
