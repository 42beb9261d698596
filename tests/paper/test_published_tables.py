"""The paper's numbers as data: shapes, and what the tables say about each other."""

from __future__ import annotations

import numpy as np
import pytest

from longshift.errors import UsageError
from longshift.paper.published_tables import overall_results, paper_table

METHODS = [
    "erm", "irm", "groupdro", "mixup", "mldg", "coral", "mmd", "dann", "sagnet", "vrex", "fish", "fishr", "eqrm", "rdm",
    "pgrad", "tcri", "focal", "reweight", "bsoftmax", "ldam", "ginidg", "boda", "samaltdg", "ndcl",
]  # fmt: skip

ROWS = {
    "ginidg_average": 24 * 2 * 4,
    "totalheavytail_average": 24 * 3 * 4,
    "duality_average": 24 * 3 * 4,
    "ablation": 6 * 2 * 4,
    "setting_ratios": 8 * 4,
    "resampling": 2 * 2 * 4,
    "prior": 9 * 2 * 2,
    "contrast": 3 * 2 * 4,
    "cost": 11 * 3,
    "quantitative": 6 * 2 * 3,
    "pearson": 3,
    "friedman": 5,
    "worst_domain": 24 * 12,
}


def test_every_table_is_complete() -> None:
    assert {name: len(paper_table(name)) for name in ROWS} == ROWS
    for name in ROWS:
        frame = paper_table(name)
        keys = [c for c in frame.columns if frame[c].dtype.kind not in "fi" and c != "place"]
        assert not frame.duplicated(keys).any(), name
        assert not frame.drop(columns=["place", "stderr"], errors="ignore").isna().any().any(), name


def test_methods_are_the_registry_names_in_the_papers_order() -> None:
    assert list(dict.fromkeys(overall_results()["method"])) == METHODS
    assert list(dict.fromkeys(paper_table("worst_domain")["method"])) == METHODS
    for name in ("ablation", "prior", "cost", "quantitative", "resampling", "contrast"):
        assert set(paper_table(name)["method"]) <= set(METHODS)


def test_rows_repeated_between_tables_agree() -> None:
    overall = overall_results()
    home = overall[overall["dataset"] == "OfficeHome"]
    keys = ["method", "setting", "group"]
    for name, column, value in (
        ("ablation", "variant", "full"),
        ("ablation", "variant", "erm"),
        ("resampling", "resampling", "applied"),
        ("contrast", "contrast", "infonce_nd"),
    ):
        frame = paper_table(name)
        both = frame[frame[column] == value].merge(home, on=keys, suffixes=("", "_main"))
        assert len(both) == 8
        np.testing.assert_array_equal(both["mean"], both["mean_main"])
        np.testing.assert_array_equal(both["stderr"], both["stderr_main"])


def test_an_unknown_table_names_the_close_ones() -> None:
    with pytest.raises(UsageError, match="worst_domain"):
        paper_table("worst-domain")
