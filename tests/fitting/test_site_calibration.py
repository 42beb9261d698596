"""What the held-out sites of a fit teach about new ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longshift.fitting import site_calibration
from longshift.fitting.plan import FitJob
from longshift.fitting.site_calibration import learn_new_sites
from longshift.inference import SureRule


def kept(n: int, sharp: list[float], seed: int) -> dict[str, Any]:
    """Predictions of a run; samples are in the order of their classes, which are not equally hard."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, Any] = {}
    for name, size in (("validation", 60), ("target", n)):
        labels = np.sort(rng.integers(0, 3, size))
        logits = rng.normal(0, 1, (size, 3))
        logits[np.arange(size), labels] += np.asarray(sharp)[labels]
        arrays |= {f"{name}_logits": logits, f"{name}_labels": labels, f"{name}_features": rng.normal(0, 1, (size, 4))}
        arrays |= {f"{name}_domains": rng.integers(0, 2, size)}
    return arrays


def shuffled(arrays: dict[str, Any], seed: int) -> dict[str, Any]:
    order = np.random.default_rng(seed).permutation(len(arrays["target_labels"]))
    return {name: values[order] if name.startswith("target_") else values for name, values in arrays.items()}


def sure_rule(monkeypatch: pytest.MonkeyPatch, runs: dict[str, dict[str, Any]]) -> SureRule:
    monkeypatch.setattr(site_calibration, "_arrays", lambda folder: runs[folder.name])
    run: Any = None  # not looked at
    jobs = [FitJob("erm", name, Path(name), run) for name in runs if name != "final"]
    found = learn_new_sites(jobs, Path("final"), ["a", "b"])
    assert found is not None
    assert found.sure is not None
    return found.sure


def test_the_threshold_does_not_depend_on_the_order_of_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {"small": kept(130, [4.0, 1.0, 0.0], 1), "large": kept(200, [4.0, 2.0, 1.0], 2)}
    first = sure_rule(monkeypatch, {**runs, "final": kept(9, [1.0] * 3, 3)})
    other = {name: shuffled(arrays, 5) for name, arrays in runs.items()}
    second = sure_rule(monkeypatch, {**other, "final": kept(9, [1.0] * 3, 3)})
    assert first.threshold == second.threshold
    assert (first.accuracy, first.coverage) == pytest.approx((second.accuracy, second.coverage))


def test_small_sites_weigh_as_much_as_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = kept(100, [1.0] * 3, 1), kept(300, [3.0] * 3, 2)
    twice = {name: np.concatenate([values] * 2) if "target" in name else values for name, values in large.items()}
    final = kept(9, [1.0] * 3, 3)
    once, doubled = (sure_rule(monkeypatch, {"s": small, "l": found, "final": final}) for found in (large, twice))
    assert once.threshold == doubled.threshold
    assert once.accuracy == pytest.approx(doubled.accuracy)
