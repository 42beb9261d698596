"""The page about one new site."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from longshift.fitting.site_page import site_name, site_page
from longshift.inference import (
    HeldOutSite,
    Outputs,
    Predictions,
    SiteKnowledge,
    SiteOffset,
    SureRule,
    UnseenAccuracy,
)
from longshift.inference.expected_accuracy import estimate_site
from longshift.inference.prediction import DominantClass, Prediction, SeenInputs
from longshift.report.html_page import render_page
from tests.golden import check_golden
from tests.inference.site_outputs import reference, signals
from tests.report.page_words import words_of

HELD_OUT = (HeldOutSite("x", 0.7, signals(0.3)), HeldOutSite("y", 0.5, signals(0.6, 0.5)))


def test_the_words_of_the_page() -> None:
    """With everything that there is to say: at most six findings."""
    known = SiteKnowledge(HELD_OUT, reference(), SureRule(0.62, 0.71, 0.3))
    features = known.reference.seen
    shares = np.full((len(features), 3), 0.1)
    shares[:, 0] = 0.8
    names = tuple(f"v.npz#{k} <b>" for k in range(len(features)))
    rows = tuple(Prediction(name, (("0", 0.8), ("1", 0.1)), k < 5) for k, name in enumerate(names))
    outputs = Outputs(names, torch.from_numpy(np.log(shares)), torch.from_numpy(features), ())
    found = Predictions(
        rows, (("w.npz", "not a table"),), 0.62, SureRule(0.62, 0.71, 0.3), UnseenAccuracy(0.3, 2, 3), HELD_OUT,
        estimate_site(known, signals(0.9, 0.8, 25), 0.7), "", DominantClass("0", 0.8, 0.33),
        SeenInputs(("a", "b"), 2, 3),
        SiteOffset(np.zeros(3), np.array([0.5, 0.3, 0.2]), 25, 0.4), 0.03, ("2",), outputs,
    )  # fmt: skip
    info = SimpleNamespace(vectors=True, method="NDCL-plus", sources=("x", "y"), counts=((4, 4, 2), (1, 8, 1)))
    model: Any = SimpleNamespace(info=info, classes=("0", "1", "2"), knowledge=known, temperature=1.0)
    page = site_page(model, found, "new <site>", np.array([0, 2]))
    assert len(page.summary) <= 6
    check_golden("site-page.txt", words_of(render_page(page)).rpartition("\nMade by")[0] + "\n")


def test_a_name_for_a_site() -> None:
    assert site_name(["new/site/"]) == "site"
    assert site_name(["a/1.png", "a/2.png", "b"]).startswith("1.png")
