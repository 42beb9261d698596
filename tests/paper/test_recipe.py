"""The words under tables and figures, from facts made by hand."""

from __future__ import annotations

from types import SimpleNamespace as Facts
from typing import Any

from longshift.paper.recipe import caption
from tests.golden import check_golden


def test_captions() -> None:
    test = Facts(chi2=138.1, chi2_p=2.1e-18, cases=32, unanimous=False, df=(23, 713), f=7.16, f_p=1.1e-20)
    mirrored = Facts(first="art", second="photo", classes=("dog", "cat"), ratio=30.0, validation=14)
    absorbed = Facts(sources=("art", "photo", "sketch"), sizes=(33, 7, 1), level_size=3)
    one, three = {"targets": ("ink",), "trials": 1}, {"targets": ("ink", "neon"), "trials": 3}
    lost: Any = Facts(notes=lambda: ("1 run is missing.",))
    captions = [
        caption("origin", steps=[100, 200], trials=2, draws=1, scale="quick", made_by=["cpu", "1a2b3c"]),
        caption("ginidg", ratio=10.0),
        caption("ginidg", ratio=None),
        caption("resampling"),
        caption("friedman", test=test, difference=6.43, paper=False),
        caption("friedman", test=test, difference=6.43, paper=True),
        caption("alpha-beta", study=one),
        caption("rho", lost, study=three),
        caption("prior", kinds={"exact", "sliced"}),
        caption("quantitative"),
        caption("averaged", targets=2, rule="the rule"),
        caption("averaged", targets=1, rule="the rule"),
        caption("pearson", points=12),
        caption("pearson-definition"),
        caption("per-class", lost, absent={"4", "2"}),
        caption("per-class", absent=()),
        caption("settings"),
        caption("ratios"),
        caption("ratios-sources", setting="Cross", recipes=[Facts(sources=("a", "b"), target="c")] * 2),
        caption("negatives", target="ink", positive_ratio=31.4, negative_ratio=1.234),
        caption("failure-misaligned", counts=mirrored, paper_ratio=400),
        caption("failure-absorbed", counts=absorbed, paper_sizes=(100, 20, 4), paper_level=10),
    ]
    check_golden("paper_captions.txt", "\n\n".join(captions) + "\n")
