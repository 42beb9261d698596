"""The paper's numbers as data: shapes, spot values read off the paper, and what the tables say about each other."""

from __future__ import annotations

import numpy as np
import pandas as pd
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


def number(frame: pd.DataFrame, value: str = "mean", **where: str) -> float:
    for column, wanted in where.items():
        frame = frame[frame[column] == wanted]
    assert len(frame) == 1, f"{len(frame)} rows for {where}"
    return float(frame[value].iloc[0])


def test_every_table_is_complete() -> None:
    assert {name: len(paper_table(name)) for name in ROWS} == ROWS
    for name in ROWS:
        frame = paper_table(name)
        keys = [c for c in frame.columns if frame[c].dtype.kind not in "fi" and c != "place"]
        assert not frame.duplicated(keys).any(), name
        assert not frame.drop(columns=["place", "stderr"], errors="ignore").isna().any().any(), name


@pytest.mark.parametrize(
    ("table", "where", "mean", "stderr"),
    [
        (
            "totalheavytail_average",
            {"method": "ndcl", "dataset": "PACS", "group": "average"},
            76.4,
            0.6,
        ),
        ("ginidg_average", {"method": "erm", "dataset": "VLCS", "group": "average"}, 74.4, 1.3),
        ("ginidg_average", {"method": "ndcl", "dataset": "PACS", "group": "few"}, 79.4, 1.9),
        ("duality_average", {"method": "dann", "dataset": "VLCS", "group": "many"}, 41.4, 5.7),
        ("duality_average", {"method": "ndcl", "dataset": "OfficeHome", "group": "few"}, 47.6, 0.6),
        ("ablation", {"variant": "no_aug", "setting": "Duality", "group": "many"}, 71.9, 1.5),
        ("resampling", {"resampling": "omitted", "setting": "Duality", "group": "few"}, 43.7, 0.3),
        ("prior", {"method": "ginidg", "setting": "Duality", "pair": "source_target"}, 2.36, 0.19),
        ("contrast", {"contrast": "supcon_nd", "setting": "TotalHeavyTail", "group": "many"}, 75.3, 1.3),
        ("worst_domain", {"method": "boda", "dataset": "OfficeHome", "target": "P"}, 51.8, 1.1),
        ("worst_domain", {"method": "ginidg", "dataset": "VLCS", "target": "C"}, 72.9, 1.8),
    ],
)
def test_spot_values(table: str, where: dict[str, str], mean: float, stderr: float) -> None:
    frame = paper_table(table)
    assert number(frame, **where) == mean
    assert number(frame, "stderr", **where) == stderr


def test_spot_values_without_standard_error() -> None:
    assert number(paper_table("cost"), method="ndcl", variant="no_con", dataset="OfficeHome") == 0.221
    assert number(paper_table("cost"), method="tcri", dataset="PACS") == 0.415
    quantitative = paper_table("quantitative")
    assert number(quantitative, method="ginidg", setting="TotalHeavyTail", quantity="margin") == -0.084
    assert number(paper_table("pearson"), "p_value", quantity="small_margin") == 8.616e-6
    ratios = paper_table("setting_ratios")
    assert number(ratios, "source_class_ratio_2", dataset="VLCS", setting="TotalHeavyTail", target="S") == 688.0


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
