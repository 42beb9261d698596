"""What the verbs print, from facts made by hand (tests/golden)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from longshift.data import VectorSource
from longshift.inference import Embedded, HeldOutSite, Predictions, SiteKnowledge, SiteOffset, SureRule, UnseenAccuracy
from longshift.inference.evaluating import SiteResult
from longshift.inference.expected_accuracy import estimate_site
from longshift.inference.exporting import Exported
from longshift.inference.prediction import DominantClass, Prediction, SeenInputs
from longshift.metrics import evaluate_predictions
from longshift.templates import render
from tests.golden import check_golden
from tests.inference.site_outputs import reference, signals

HELD_OUT = (HeldOutSite("x", 0.7, signals(0.3)), HeldOutSite("y", 0.5, signals(0.6, 0.5)))
ROWS = tuple(Prediction(f"{k}.png", ((str(k % 2), 0.4 + 0.2 * k), ("2", 0.1)), k < 1) for k in range(3))


def join(texts: list[str]) -> str:
    return "\n---\n".join(text.strip("\n") for text in texts) + "\n"


def site(distance: float, dominance: float, n: int) -> Predictions:
    estimate = estimate_site(SiteKnowledge(HELD_OUT, reference()), signals(distance, 0.8, n), dominance)
    return Predictions(ROWS, (("3.png", "not an image"),), 0.62, SureRule(0.62, 0.71, 0.3), None, HELD_OUT, estimate)


def test_predict() -> None:
    usual = site(0.4, 0.1, 200)
    odd = replace(
        site(0.9, 0.7, 25),
        sure=SureRule(0.05, 0.24, 0.1),
        dominant=DominantClass("0", 0.8, 0.33),
        seen=SeenInputs(("a", "b"), 2, 3),
        vanished=("1",),
        adapted=SiteOffset(np.zeros(3), np.full(3, 1 / 3), 25, 0.0),
    )
    moved = replace(usual, adapted=SiteOffset(np.zeros(3), np.full(3, 1 / 3), 200, 0.5), gain=0.042)
    given = replace(usual, adapted=SiteOffset(np.zeros(3), np.full(3, 1 / 3), 200, 1.0, given=True))
    plain = Predictions(ROWS, (), no_estimate="few")
    adapted = replace(plain, no_estimate="adapted")
    texts = [
        usual.to_text(), moved.to_text(), odd.to_text(page=Path("site.html")), plain.to_text(Path("p.csv")),
        adapted.to_text(), given.to_text(),
    ]  # fmt: skip
    check_golden("predict.txt", join(texts))


@pytest.mark.parametrize(("balanced", "useful"), [(0.2, False), (0.30, False), (0.3125, True), (0.9, True)])
def test_when_not_to_use_a_model_of_four_classes(balanced: float, useful: bool) -> None:
    record = UnseenAccuracy(balanced, 3, 4)
    assert (record.warning() == "") is record.useful is useful


def test_evaluate() -> None:
    found = {"recorded": {"test": 0.5}, "agrees": True}
    run = render("longshift.inference", "evaluate.txt.j2", found=found, sets=[])
    estimate = site(0.4, 0.1, 200).estimate
    measured = evaluate_predictions(np.eye(3), np.array([0, 1, 1]), np.zeros(3, dtype=np.int64), "abc", ("s",))
    results = [SiteResult("north", measured, 0.1, estimate, "data"), SiteResult("south", measured, 0.1, None, "site")]
    texts = [
        run,
        *(
            render("longshift.inference", "evaluate_warnings.txt.j2", results=part, held_out=HELD_OUT)
            for part in (results, results[:1], [replace(results[0], seen="", unknown={"owl": 2, "fox": 1})])
        ),
        UnseenAccuracy(0.3, 3, 4).warning(),
        UnseenAccuracy(0.25, 1, 4).warning(),
    ]
    check_golden("evaluate.txt", join(texts))


def test_embed_and_export() -> None:
    source = VectorSource("small_conv", "0" * 64, 32, "1.0")
    found = Embedded(SimpleNamespace(), np.arange(2), np.zeros((1200, 3), np.float32), source, {"b.png": "broken"})  # type: ignore[arg-type]
    done = Exported(Path("m.onnx"), Path("m.onnx.json"), 6.6e-06, 100, 40)
    texts = [
        *(render("longshift.inference", "embed.txt.j2", found=found, out="x.npz", unlabeled=u) for u in (True, False)),
        *(
            render("longshift.inference", "export.txt.j2", done=made, size=1_234_567)
            for made in (done, replace(done, real=0))
        ),
    ]
    check_golden("embed-export.txt", join(texts))
