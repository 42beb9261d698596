"""Temperature scaling: recovers a known temperature and agrees with L-BFGS."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from longshift.metrics import expected_calibration_error, fit_temperature, negative_log_likelihood


def sampled(n: int, classes: int, sharpness: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits whose true temperature is `sharpness`: labels are drawn from softmax(logits / sharpness)."""
    rng = np.random.default_rng(seed)
    honest = rng.normal(size=(n, classes)) * 2
    p = np.exp(honest) / np.exp(honest).sum(1, keepdims=True)
    labels = np.array([rng.choice(classes, p=row) for row in p])
    return honest * sharpness, labels


def test_finds_the_temperature_that_made_the_labels() -> None:
    logits, labels = sampled(8000, 5, 3.0, 0)
    assert fit_temperature(logits, labels) == pytest.approx(3.0, rel=0.05)
    scaled = logits / fit_temperature(logits, labels)
    assert expected_calibration_error(scaled, labels) < 0.02 < expected_calibration_error(logits, labels)


@settings(max_examples=15, deadline=None)
@given(st.integers(20, 60), st.integers(2, 6), st.floats(0.3, 4), st.integers(0, 99))
def test_agrees_with_lbfgs(n: int, classes: int, sharpness: float, seed: int) -> None:
    logits, labels = sampled(n, classes, sharpness, seed)
    rows, truth = torch.tensor(logits), torch.tensor(labels)
    inverse = torch.ones((), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([inverse], lr=1, max_iter=300, line_search_fn="strong_wolfe", tolerance_grad=1e-12)
    share = 1 / (n + 2)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        log_p = (rows * inverse).log_softmax(1)
        true = log_p.gather(1, truth[:, None])[:, 0]
        others = (log_p.sum(1) - true) / (classes - 1)
        loss = -((1 - share) * true + share * others).mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    expected = 1 / float(inverse.detach())
    if 0.06 < expected < 19:
        assert fit_temperature(logits, labels) == pytest.approx(expected, rel=1e-3)


def test_a_perfect_small_set_stays_modest() -> None:
    logits = np.eye(4)[np.arange(8) % 4] * 2.0
    labels = np.arange(8) % 4
    fitted = fit_temperature(logits, labels)
    confidence = 1 / (1 + 3 * np.exp(-2.0 / fitted))
    assert confidence == pytest.approx(9 / 10, abs=1e-3)  # (n + 1) / (n + 2)
    assert negative_log_likelihood(logits / fitted, labels) < negative_log_likelihood(logits, labels)
