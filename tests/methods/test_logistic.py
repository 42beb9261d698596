"""Logistic regression: against scikit-learn, and the strength that held-out domains choose."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from longshift.methods import cell_weights, choose_strength, fit_logistic, thin_cells
from longshift.methods.logistic import STRENGTHS, USUAL
from longshift.training import RunConfig, train


def samples(noise: float = 1.0, columns: int = 6) -> tuple[Tensor, Tensor, Tensor]:
    """Three classes in three domains of different size; class 2 is missing in domain 0."""
    rng = np.random.default_rng(0)
    d = np.repeat([0, 1, 2], [120, 60, 20])
    y = np.where(d == 0, rng.integers(0, 2, len(d)), rng.integers(0, 3, len(d)))
    x = rng.normal(size=(len(d), columns)) * noise + 2 * np.eye(3, columns)[y] + rng.normal(size=(3, columns))[d]
    return torch.from_numpy(3 * x + 5), torch.from_numpy(y), torch.from_numpy(d)


def test_weights_of_domains_and_their_classes_are_equal() -> None:
    _, y, d = samples()
    weights = cell_weights(y, d)
    for domain, classes in ((0, 2), (1, 3), (2, 3)):
        for k in range(classes):
            assert weights[(d == domain) & (y == k)].sum().item() == pytest.approx(1 / 3 / classes)


@pytest.mark.parametrize("strength", [1.0, 0.1, 0.003])
def test_the_solution_is_that_of_scikit_learn(strength: float) -> None:
    x, y, d = samples()
    weights = cell_weights(y, d)
    head = fit_logistic(x, y, weights, 3, [1.0, strength])[-1]
    rows = StandardScaler().fit_transform(x.numpy())
    known = LogisticRegression(C=1 / strength, tol=1e-8, max_iter=5000).fit(rows, y.numpy(), weights.numpy())
    expected = known.predict_proba(rows)
    assert head.logits(x).softmax(1).numpy() == pytest.approx(expected, abs=1e-3)


def test_class_weights_of_one_domain_are_those_of_scikit_learn() -> None:
    x, y, _ = samples()
    head = fit_logistic(x, y, cell_weights(y, torch.zeros_like(y)), 3, [0.05])[0]
    rows = StandardScaler().fit_transform(x.numpy())
    known = LogisticRegression(C=1 / (0.05 * len(y)), class_weight="balanced", tol=1e-8, max_iter=5000)
    expected = known.fit(rows, y.numpy()).predict_proba(rows)
    assert head.logits(x).softmax(1).numpy() == pytest.approx(expected, abs=1e-3)


def test_the_strength_is_the_best_at_held_out_domains() -> None:
    x, y, d = samples(noise=2.0, columns=40)
    scores = []
    for strength in STRENGTHS:
        total = 0.0
        for domain in range(3):
            held, rest = d == domain, d != domain
            known = LogisticRegression(C=1 / strength, tol=1e-8, max_iter=5000)
            scale = StandardScaler().fit(x[rest].numpy())
            known.fit(scale.transform(x[rest].numpy()), y[rest].numpy(), cell_weights(y[rest], d[rest]).numpy())
            right = known.predict(scale.transform(x[held].numpy())) == y[held].numpy()
            of_class = [right[y[held].numpy() == k].mean() for k in y[held].unique().tolist()]
            total += float(right.mean() + np.mean(of_class))
        scores.append(total)
    assert choose_strength(x, y, d, 3) == STRENGTHS[int(np.argmax(scores))]
    assert choose_strength(x, y, torch.zeros_like(d), 3) == USUAL


def test_large_cells_are_thinned() -> None:
    y, d = torch.tensor([0] * 10 + [1] * 3), torch.tensor([0] * 9 + [1] * 4)
    assert thin_cells(y, d, 3).tolist() == [0, 3, 6, 9, 10, 11, 12]


def test_a_run_takes_one_step_with_a_linear_head(tmp_path: Path) -> None:
    config = RunConfig(data="pacs-features", target="photo", method="logistic", steps=50)
    assert (config.steps, config.backbone_name) == (1, "linear")
    assert RunConfig(target="photo", method="logistic").head == "mlp"  # of pixels there is no head on features
    run = train({"data": "pacs-features", "target": "photo", "method": "logistic"}, out=tmp_path / "run")
    assert run.result["steps_done"] == 1
    assert run.result["selected"]["target"]["accuracy"] > 0.7
