"""Facts of a fit and of a new site made by hand, for the tests of words."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from longshift.data import DataProblem
from longshift.fitting.data_summary import DataSummary
from longshift.fitting.facts import MAJORITY, FitSummary, SiteScore, StyleChoice, Training, summarize
from longshift.fitting.site_page import site_page
from longshift.fitting.suggest import LabelCurve, LabelGain
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
from longshift.report import Page
from longshift.training import RunConfig
from tests.inference.site_outputs import reference, signals

CLASSES = ("melanoma", "naevus <b>", "wart|x")
SITES = ("north", "south", "west")


def data(**values: Any) -> DataSummary:
    """Three sites; one class is only at one of them."""
    base: dict[str, Any] = {
        "name": "skin [a]", "noun": "images", "sites": SITES, "classes": CLASSES,
        "counts": np.array([[40, 90, 0], [4, 60, 0], [30, 50, 8]]), "groups": 211,
        "problems": (
            DataProblem("duplicate", "west/melanoma/1.png", "north/melanoma/7.png"),
            DataProblem("misplaced", "notes.txt", ""),
            DataProblem("similar domains", "", "differ only by case: 'A', 'a'"),
        ),
    }  # fmt: skip
    return DataSummary(**{**base, **values})


def score(site: str, confusion: list[list[int]], seen: float = 0.9, **seen_at: float) -> SiteScore:
    """Scores of one held-out site from its confusion matrix."""
    table = np.array(confusion)
    n = table.sum(axis=1)
    shares = {CLASSES[k]: float(table[k, k] / n[k]) if n[k] else None for k in range(len(n))}
    balanced = float(np.mean([share for share in shares.values() if share is not None]))
    accuracy = float(np.trace(table) / n.sum())
    return SiteScore(site, int(n.sum()), accuracy, balanced, seen, seen, shares, tuple(map(tuple, confusion)), seen_at)


def training(**values: Any) -> Training:
    """Seven runs with resnet18."""
    config = RunConfig(
        data="skin", target="", method="ndcl_plus", backbone="resnet18", pretrained=True, image_size=224, steps=900
    )
    base: dict[str, Any] = {
        "config": config, "runs": 13, "steps": 900, "usual_steps": 300, "minutes": 10, "tried_styles": 3,
        "unreached": "", "why_trainable": "gpu", "final_steps": 240,
    }  # fmt: skip
    return Training(**{**base, **values})


def full_summary() -> FitSummary:
    """A fit with everything: little time, a comparison, styles, labels, a weak and an unmeasured class."""
    own = [
        score("north", [[30, 10, 0], [5, 85, 0], [0, 0, 0]], south=0.95, west=0.9),
        score("south", [[1, 3, 0], [2, 58, 0], [0, 0, 0]], north=0.9, west=0.92),
        score("west", [[10, 20, 0], [5, 45, 0], [4, 4, 0]], north=0.91, south=0.97),
    ]
    other = [
        score("north", [[25, 15, 0], [5, 85, 0], [0, 0, 0]]),
        score("south", [[1, 3, 0], [4, 56, 0], [0, 0, 0]]),
        score("west", [[8, 22, 0], [4, 46, 0], [4, 4, 0]]),
    ]
    curve = LabelCurve((LabelGain("north", 0, 0.7, 0.7), LabelGain("north", 10, 0.75, 0.8)))
    style = StyleChoice("both", "measured", (), 0.61, 0.58, 2, 1, 3, 0.21)
    majority = [
        score("north", [[0, 40, 0], [0, 90, 0], [0, 0, 0]]),
        score("south", [[0, 4, 0], [0, 60, 0], [0, 0, 0]]),
        score("west", [[0, 30, 0], [0, 50, 0], [0, 8, 0]]),
    ]
    scores = {"NDCL-plus": own, "ERM": other, MAJORITY: majority}
    rare = training(unvalidated=[("south", "melanoma")], tried=("Logistic", "NDCL-plus"))
    return summarize(data(), rare, scores, 0.93, style, curve)


def poor_summary() -> FitSummary:
    """No better than guessing at one held-out site, with a network that started from random weights."""
    config = RunConfig(data="skin", target="", method="erm", backbone="small_conv", image_size=32, steps=300)
    few = training(
        config=config,
        runs=2,
        steps=300,
        minutes=None,
        tried_styles=0,
        unreached="https://hub/timm/vit/resolve/main/model.safetensors",
        final_steps=300,
    )
    rows = [score("north", [[10, 15, 15], [40, 30, 20], [0, 0, 0]], seen=0.45)]
    look = data(problems=(), counts=np.array([[40, 90, 9], [4, 60, 9], [30, 50, 8]]))
    majority = [score("north", [[0, 40, 0], [0, 90, 0], [0, 0, 0]])]
    return summarize(look, few, {"ERM": rows, MAJORITY: majority}, 0.5)


def full_site_page(names: Sequence[str], vectors: bool) -> Page:
    """The page of a site about which there is everything to say."""
    held_out = (HeldOutSite("x", 0.7, signals(0.3)), HeldOutSite("y", 0.5, signals(0.6, 0.5)))
    known = SiteKnowledge(held_out, reference(), SureRule(0.62, 0.71, 0.3))
    shares = np.full((len(names), 3), 0.1)
    shares[:, 0] = 0.8
    rows = tuple(Prediction(name, (("0", 0.8), ("1", 0.1)), k < 5) for k, name in enumerate(names))
    features = torch.from_numpy(known.reference.seen[: len(names)])
    found = Predictions(
        rows, (("w.npz", "not a table"),), 0.62, SureRule(0.62, 0.71, 0.3), UnseenAccuracy(0.3, 2, 3), held_out,
        estimate_site(known, signals(0.9, 0.8, 25), 0.7), "", DominantClass("0", 0.8, 0.33),
        SeenInputs(("a", "b"), 2, 3), SiteOffset(np.zeros(3), np.array([0.5, 0.3, 0.2]), 25, 0.4), 0.03, ("2",),
        Outputs(tuple(names), torch.from_numpy(np.log(shares)), features, ()),
    )  # fmt: skip
    info = SimpleNamespace(vectors=vectors, method="NDCL-plus", sources=("x", "y"), counts=((4, 4, 2), (1, 8, 1)))
    model: Any = SimpleNamespace(info=info, classes=("0", "1", "2"), knowledge=known, temperature=1.0)
    return site_page(model, found, "new <site>", np.array([0, 2]))
