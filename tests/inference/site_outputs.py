"""Outputs of a model at made-up sites, for the tests of what is said about new sites."""

from __future__ import annotations

from typing import Any

import numpy as np

from longshift.inference import HeldOutSite, Reference, Signals, SiteKnowledge, make_reference


def outputs(n: int, sharp: float, shift: float, seed: int) -> tuple[Any, Any, Any]:
    """Logits, labels and features; the sharper the logits, the more of them are right."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    logits = rng.normal(0, 1, (n, 3))
    logits[np.arange(n), labels] += sharp
    features = rng.normal(0, 1, (n, 6)) + np.array([6, 6, 6, 0, 0, 0])
    features[np.arange(n), 3 + labels] += 3
    return logits, labels, features + shift * np.array([-1, -1, -1, 1, 1, 1])


def reference(seed: int = 0) -> Reference:
    """Validation samples of two sites."""
    _, labels, features = outputs(120, 3.0, 0.0, seed)
    return make_reference(3, labels, features, ["a"] * 60 + ["b"] * 60)


def signals(nearest: float, share: float = 0.7, n: int = 200) -> Signals:
    """All shares are the same."""
    return Signals(n, share, share, share, {"a": nearest + 0.1, "b": nearest})


def known(found: Signals | None = None) -> SiteKnowledge:
    """One held-out site."""
    return SiteKnowledge((HeldOutSite("a", 0.8, found or signals(0.3)),), reference())
