"""The request of a fit: its options, and arrays as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longshift
from longshift.errors import UsageError
from longshift.fitting.request import keep_samples, make_request
from tests.training.runs import CPU

X = np.random.default_rng(0).normal(size=(60, 4))
Y, D = np.repeat([0, 1], 30), np.tile(["north", "south", "west"], 20)


@pytest.mark.slow
def test_from_arrays_to_predictions(tmp_path: Path) -> None:
    x = X + 3 * Y[:, None]
    options: dict[str, Any] = {"method": "erm", "steps": 30, "hparams": {"batch_size": 8}, "runtime": CPU}
    done = longshift.fit(x, Y, D, out=tmp_path / "fit", **options)
    assert done.summary.data.sites == ("north", "south", "west")
    found = longshift.predict(done.folder, x, device="cpu")
    assert [row.path for row in found.rows[:2]] == ["0", "1"]
    assert np.mean([row.label == str(label) for row, label in zip(found.rows, Y, strict=True)]) > 0.9
    again = longshift.fit(x, Y, D, out=tmp_path / "fit", **options)
    assert again.summary.accuracy == done.summary.accuracy
    with pytest.raises(longshift.errors.LongshiftError, match="data"):
        longshift.fit(x + 1, Y, D, out=tmp_path / "fit", **options)
    with pytest.raises(UsageError, match=r"\(3, 5\)"):
        longshift.predict(done.folder, np.zeros((3, 5)), device="cpu")


def test_images_in_an_array(digits_run: Path) -> None:
    from longshift.data.digits import digit_images

    pixels = digit_images()[::300]
    found = longshift.predict(digits_run, pixels, device="cpu")
    model = longshift.load_model(digits_run, device="cpu")
    import torch

    expected = model.probabilities(torch.from_numpy(pixels.copy())).max(1)[0]
    np.testing.assert_allclose([row.probability for row in found.rows], expected, rtol=1e-5)
    with pytest.raises(UsageError, match="images"):
        longshift.predict(digits_run, pixels.astype(np.float32), device="cpu")
    with pytest.raises(TypeError, match="inputs"):
        longshift.predict(digits_run, [3], device="cpu")  # type: ignore[list-item]


def test_what_is_not_data(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="ndarray"):
        longshift.fit(X)
    with pytest.raises(TypeError, match="int"):
        longshift.fit(3, Y, D)
    with pytest.raises(TypeError, match="path"):
        longshift.fit("digits", Y)
    with pytest.raises(UsageError, match=r"\(59,\)"):
        keep_samples(X, Y[1:], D, tmp_path)


def test_a_request_reports_all_mistakes_and_knows_equal_paths() -> None:
    with pytest.raises(UsageError) as failed:
        make_request("sites", {"minutes": 0, "average": "mean", "colour": 1, "steps": None})
    assert all(name in str(failed.value) for name in ("minutes", "average", "colour"))
    assert make_request(Path("sites/"), {}) == make_request("sites/", {}) == make_request("sites", {"weights": None})
    assert make_request("sites", {"compare": True}).identity() == make_request("sites", {}).identity()
