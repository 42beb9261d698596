"""What the held-out sites of a fit teach about new ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from longshift.errors import UsageError
from longshift.fitting import fit, site_calibration
from longshift.fitting.data_summary import DataSummary
from longshift.fitting.plan import FitJob
from longshift.fitting.site_calibration import learn_new_sites
from longshift.inference import SureRule, evaluate_site, export, predict
from tests.training.runs import CPU


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
    data = DataSummary("", "images", ("a", "b"), ("x", "y", "z"), np.full((2, 3), 10), ())
    jobs = [FitJob("erm", name, Path(name), run) for name in runs if name != "final"]
    found = learn_new_sites(jobs, Path("final"), data)
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


def moved_sites(names: str) -> tuple[Any, Any, Any]:
    """Vectors of three classes at sites that each move all of them."""
    rng, parts = np.random.default_rng(0), []
    for k, name in enumerate(names):
        labels = rng.choice(3, 120, p=np.roll([0.5, 0.3, 0.2], k))
        x = 3 * np.eye(3, 6)[labels] + rng.normal(0, 0.6, (120, 6)) + rng.normal(0, 1.2, 6)
        parts.append((x.astype(np.float32), labels, np.full(120, name)))
    x, labels, sites = (np.concatenate(part) for part in zip(*parts, strict=True))
    return x, labels, sites


def test_a_fit_adapts_its_model_to_a_new_site(tmp_path: Path) -> None:
    x, y, sites = moved_sites("abcdef")
    new = sites == "f"
    done = fit(x[~new], y[~new], sites[~new], out=tmp_path / "fit", steps=60, runtime=CPU)
    model, truth = done.model("cpu"), [str(k) for k in y[new]]

    def right(**options: Any) -> float:
        return float(
            np.mean([p.label == t for p, t in zip(predict(model, x[new], **options).rows, truth, strict=True)])
        )

    found = predict(model, x[new])
    assert model.knowledge is not None
    assert model.knowledge.adaptation is not None
    assert found.adapted is not None
    assert found.adapted.n == 120
    assert right() >= right(adapt="off") + 0.05
    mix = {str(k): float((y[new] == k).mean()) for k in range(3)}
    assert right(mix=mix) >= right(adapt="off") + 0.05
    # One sample is not adapted by itself; with others of its site, it gets the label that it has among them.
    assert predict(model, x[new][:1]).adapted is not None
    assert predict(model, x[new][:1]).adapted.strength == 0  # type: ignore[union-attr]
    alone = [predict(model, x[new][[i]], reference=x[new]).rows[0].label for i in range(10)]
    assert alone == [row.label for row in found.rows[:10]]
    with pytest.raises(UsageError, match="cat"):
        predict(model, x[new], mix={"cat": 0.5})

    np.savez(tmp_path / "new.npz", x=x[new], label=y[new].astype(str), domain=sites[new])
    measured = evaluate_site(model, tmp_path / "new.npz")[0]
    assert measured.found.accuracy == pytest.approx(right())
    assert measured.plain_accuracy == pytest.approx(right(adapt="off"))
    exported = export(done.folder, "torch", tmp_path / "m.pt2", reference=[tmp_path / "new.npz"])
    logits = torch.export.load(exported.file).module()(torch.from_numpy(x[new]))[0]
    assert [str(int(k)) for k in logits.argmax(1)] == [row.label for row in found.rows]
