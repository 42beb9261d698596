"""What a fit must beat, against scikit-learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import StandardScaler

from longshift.fitting.baselines import STRENGTHS, baseline_scores
from longshift.fitting.facts import LOGISTIC, MAJORITY
from longshift.training import Task, make_task, resolve


@pytest.fixture
def task(tmp_path: Path) -> Task:
    rng = np.random.default_rng(0)
    y, d = rng.choice(3, 300, p=[0.6, 0.3, 0.1]), rng.integers(0, 3, 300)
    x = rng.normal(size=(300, 12)) + 1.5 * np.eye(3, 12)[y] + rng.normal(size=(3, 12))[d]
    np.savez(tmp_path / "v.npz", x=x, label=np.array(["a", "b", "c"])[y], domain=np.array(["p", "q", "r"])[d])
    values = {"data": str(tmp_path / "v.npz"), "target": "q", "setting": "Natural", "validation": 5, "shrink": True}
    return make_task(resolve(values, "test"))


def test_both_baselines(task: Task) -> None:
    parts = {part: task.split.part(part) for part in ("train", "validation", "target")}
    x = {part: np.asarray(task.store.inputs[rows], dtype=np.float64) for part, rows in parts.items()}
    y = {part: task.labels(rows) for part, rows in parts.items()}
    found = baseline_scores({"q": task})
    assert found[MAJORITY][0].accuracy == pytest.approx((y["target"] == np.bincount(y["train"]).argmax()).mean())
    scale = StandardScaler().fit(x["train"])
    models = [
        LogisticRegression(C=1 / (s * len(y["train"])), class_weight="balanced", max_iter=5000, tol=1e-6).fit(
            scale.transform(x["train"]), y["train"]
        )
        for s in STRENGTHS
    ]
    seen = [balanced_accuracy_score(y["validation"], m.predict(scale.transform(x["validation"]))) for m in models]
    predicted = models[int(np.argmax(seen))].predict(scale.transform(x["target"]))
    assert found[LOGISTIC][0].accuracy == pytest.approx((predicted == y["target"]).mean())
    assert found[LOGISTIC][0].balanced == pytest.approx(balanced_accuracy_score(y["target"], predicted))
